"""How fast is the queue, beside what the disk and SQLite could do, and does it stay so?"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from queue_app import holders, wakeup
from tests.benchmarks import postgres, report, rounds, stores, waking
from tests.benchmarks.logs import keep_aside
from tests.benchmarks.report import Findings
from tests.benchmarks.stores import Store
from tests.benchmarks.work import Desk
from tinyoffice.runtime import runtime_directory

FEW = 1_000
WIDEST = 110  # what the widest table needs
BYTES_PER_ROW = 7_000  # both files and what the copy needs while it is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to measure."""

    rounds: int
    sizes: tuple[int, int, int, int]  # messages per round of each block of work
    messages: int
    idle_seconds: float
    rows: int


FULL = Plan(rounds=20, sizes=(100, 300, 400, 400), messages=500, idle_seconds=20, rows=1_000_000)
QUICK = Plan(rounds=10, sizes=(50, 60, 200, 200), messages=100, idle_seconds=10, rows=20_000)


def main(arguments: Sequence[str]) -> int:
    """Measure, and show it."""
    options = _options(arguments)
    plan = QUICK if options.quick else FULL
    rows = options.rows or plan.rows
    home = settings.TINYOFFICE.home
    console = Console(stderr=True)
    if shutil.disk_usage(home).free < rows * BYTES_PER_ROW:
        needed = rows * BYTES_PER_ROW / 1e9
        console.print(f"{rows:,} rows need about {needed:.0f} GB under '{home}'; use --rows.")
        return 1
    try:
        with _progress(console) as progress, keep_aside():
            found = _measure(plan, rows, home, progress)
    finally:
        shutil.rmtree(runtime_directory(home))
    if options.markdown:
        sys.stdout.write(report.markdown(found))
    else:
        report.show(found, Console(width=max(WIDEST, console.width)))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/bench queue", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything, under a minute")
    parser.add_argument("--rows", type=_count, help="finished rows in the large file")
    parser.add_argument("--markdown", action="store_true", help="print for docs/benchmarks.md")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number <= FEW:
        raise argparse.ArgumentTypeError(f"must be more than {FEW:,}, the size it is compared with")
    return number


def _measure(plan: Plan, rows: int, home: Path, progress: Progress) -> Findings:
    both = _filled(rows, home, progress)
    found = Findings(rounds=plan.rounds, stores=both, idle_seconds=plan.idle_seconds)
    _play(plan, both, found, progress)
    step = progress.add_task("wake-up, idle, PostgreSQL", total=4)
    both[-1].enter()  # the file of the settings, which the other processes open
    found.waking = waking.latencies(plan.messages)
    progress.advance(step)
    found.idle_listener = waking.idle_listener(plan.idle_seconds)
    progress.advance(step)
    found.idle_processor = waking.idle_processor(plan.idle_seconds)
    progress.advance(step)
    found.postgres = postgres.measure(plan.rounds, plan.sizes, plan.messages)
    progress.advance(step)
    for store in both:
        store.close()
    return found


def _filled(rows: int, home: Path, progress: Progress) -> list[Store]:
    tables = stores.migrate()
    both = []
    for file, count in ((home / "few.db", FEW), (tables, rows)):
        task = progress.add_task(f"filling {count:,} rows", total=count)
        both.append(
            stores.build(
                tables, file, count, lambda done, task=task: progress.update(task, completed=done)
            )
        )
    return both


def _play(plan: Plan, both: Sequence[Store], found: Findings, progress: Progress) -> None:
    home = settings.TINYOFFICE.home
    task = progress.add_task("rounds", total=plan.rounds + 1 + len(both))

    def tell() -> None:
        found.fsync += rounds.fsync_times(home)
        progress.advance(task)

    desk = Desk(holder=holders.become("bench", home))
    bell = wakeup.hang_up()  # as in a running office, somebody is rung
    rounds.run(both, desk, bell, rounds=plan.rounds, sizes=plan.sizes, tell=tell)
    bell.close()
    desk.holder.release()


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
