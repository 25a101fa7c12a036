"""How the queue stands: depths and ages, read through partial indexes and running totals only."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Min, Q, Sum

from queue_app.models import Lane, Message, Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How many messages are where, and how long the first in line has waited, in ms."""

    pending: int
    processing: int
    completed: int
    dead: int
    oldest_pending_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLane:
    """A lane that takes nothing up for now, and why."""

    name: str
    paused: bool
    blocked_until: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A process and how long ago it was last seen, in ms."""

    name: str
    host: str
    pid: int
    seen_ms_ago: int


def depths(now: int) -> Depths:
    """Count what waits, runs and is dead; completed is the lanes' running total, never a count."""
    first = (
        Message.objects.pending().filter(available_at__lte=now).aggregate(at=Min("available_at"))
    )
    return Depths(
        pending=Message.objects.pending().count(),
        processing=Message.objects.processing().count(),
        completed=Lane.objects.aggregate(total=Sum("completed"))["total"] or 0,
        dead=Message.objects.dead().count(),
        oldest_pending_ms=None if first["at"] is None else now - int(first["at"]),
    )


def waiting_lanes(now: int) -> list[WaitingLane]:
    """Return the lanes that are paused or blocked."""
    rows = Lane.objects.filter(Q(paused=True) | Q(blocked_until__gt=now)).order_by("name")
    return [
        WaitingLane(
            name=row.name,
            paused=row.paused,
            blocked_until=row.blocked_until,
            reason=row.blocked_reason,
        )
        for row in rows
    ]


def processes(now: int) -> list[Seen]:
    """Return every process that has a pulse, the latest to start last."""
    return [
        Seen(name=row.name, host=row.host, pid=row.pid, seen_ms_ago=max(0, now - row.pulse))
        for row in Process.objects.order_by("started")
    ]
