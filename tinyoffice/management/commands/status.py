"""`manage.py status`: how the office stands."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from queue_app.status import Seen, WaitingLane
from tinyoffice import report
from tinyoffice.report import Report


class Command(BaseCommand):
    """Tell how processes, queue, lanes, database and the Spark part stand."""

    help = (
        "Tell how the office stands: its processes and when each was last seen, how deep the queue is, "
        "which lanes are blocked or paused and why, the database, and the Spark part. "
        "Exits 1 when no office runs on this home."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the form of the answer."""
        parser.add_argument("--json", action="store_true", help="as JSON, times in milliseconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report."""
        found = report.gather(settings.TINYOFFICE)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(found), indent=2))
        else:
            self.stdout.write("\n".join(_lines(found)))
        if not found.running:
            sys.exit(1)


def _lines(found: Report) -> Iterator[str]:
    yield f"Office     {'open at ' + found.url if found.running else 'closed'}"
    yield f"Home       {found.home}"
    yield f"Database   {found.database}"
    yield f"Spark      {found.spark}"
    yield f"Queue      {_queue(found)}"
    for lane in found.waiting_lanes:
        yield f"Lane       {lane.name} {_why(found, lane)}"
    yield from _processes(found)


def _queue(found: Report) -> str:
    queue = found.queue
    oldest = queue.oldest_pending_ms
    waits = "" if oldest is None else f" (the first has waited {duration(oldest)})"
    return (
        f"{queue.pending} pending{waits}, {queue.processing} processing, "
        f"{queue.completed} completed, {queue.dead} dead"
    )


def _why(found: Report, lane: WaitingLane) -> str:
    if lane.paused:
        return "is paused"
    return f"is blocked for {duration((lane.blocked_until or found.at) - found.at)}: {lane.reason}"


def _processes(found: Report) -> Iterator[str]:
    pulses = {(seen.name, seen.pid): seen for seen in found.seen}
    for kept in found.kept:
        seen = pulses.pop((kept.name, kept.pid), None)
        yield f"Process    {kept.name:<10} {kept.state:<8} {kept.detail}{_last_seen(seen)}"
    for seen in pulses.values():
        yield f"Process    {seen.name:<10} {'':<8} pid {seen.pid} on {seen.host}{_last_seen(seen)}"


def _last_seen(seen: Seen | None) -> str:
    return "" if seen is None else f", last seen {duration(seen.seen_ms_ago)} ago"


def duration(milliseconds: int) -> str:
    """Return a length of time in its two greatest units."""
    seconds = milliseconds // 1000
    parts = [
        (seconds // 86_400, "d"),
        (seconds // 3_600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    ]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{number} {unit}" for number, unit in parts[:2])
