"""What was measured, as tables for a person: on the terminal or as Markdown."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import django
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from tests.benchmarks.figures import Series, percentile
from tests.benchmarks.stores import Store
from tests.benchmarks.waking import Waking
from tests.benchmarks.work import CYCLE, CYCLE_MANY, MEASURES

FLOOR_GOAL = 0.5
FLAT_GOAL = 0.1
WAKE_GOAL = 5.0
IDLE_GOAL = 0.005


class Grid(NamedTuple):
    """A table that answers the question it is named after."""

    question: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(slots=True, kw_only=True)
class Findings:
    """All that one run measured."""

    rounds: int
    stores: Sequence[Store]
    fsync: list[float] = field(default_factory=list)
    waking: Waking = field(default_factory=lambda: Waking([], []))
    idle_listener: float | None = None
    idle_processor: float | None = None
    idle_seconds: float = 0
    postgres: dict[str, Any] | None = None


def grids(found: Findings) -> Iterator[Grid]:
    """Yield the tables of a run."""
    yield _surroundings(found)
    yield _beside_the_floor(found)
    yield _flatness(found)
    yield _waking(found)
    if found.postgres:
        yield _postgres(found.postgres)
    yield _goals(found)


def show(found: Findings, console: Console) -> None:
    """Print the tables on the terminal."""
    for grid in grids(found):
        table = Table(
            title=grid.question,
            title_justify="left",
            title_style="bold",
            box=SIMPLE,
            pad_edge=False,
        )
        for place, column in enumerate(grid.columns):
            table.add_column(column, justify="right" if place else "left")
        for row in grid.rows:
            table.add_row(*row)
        console.print(table)


def markdown(found: Findings) -> str:
    """Return the tables as docs/benchmarks.md keeps them."""
    parts = []
    for grid in grids(found):
        ruler = ["---", *["---:"] * (len(grid.columns) - 1)]
        lines = [_line(row) for row in (grid.columns, ruler, *grid.rows)]
        parts.append(f"### {grid.question}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _surroundings(found: Findings) -> Grid:
    sizes = "; ".join(f"{store.rows:,} rows: {store.size / 1e6:,.0f} MB" for store in found.stores)
    versions = (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"Django {django.get_version()}"
    )
    rows = [
        ("versions", versions),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        ("files before each round", sizes),
        ("rounds", f"{found.rounds} after one to warm up, office and floor in turns"),
        ("fsync of 4 kB", _spread_of(found.fsync)),
        ("load at the end", f"{os.getloadavg()[0]:.1f}"),
    ]
    return Grid("What was it measured on?", ("", ""), rows)


def _beside_the_floor(found: Findings) -> Grid:
    columns = (
        *("", "rows", "per s", "p50 ms", "p95 ms", "spread"),
        *("floor per s", "p95 ms", "spread", "ratio", "by round"),
    )
    rows = [
        (
            *(measure, f"{store.rows:,}"),
            *_cells(store.office_book.series[measure]),
            *_floor_cells(store.floor_book.series[measure]),
            *_ratios(store.office_book.series[measure], store.floor_book.series[measure]),
        )
        for measure in MEASURES
        for store in found.stores
    ]
    return Grid("How much of bare SQLite's speed does the queue keep?", columns, rows)


def _cells(series: Series) -> tuple[str, ...]:
    return (
        f"{series.rate:,.0f}",
        f"{median(series.steps):.2f}",
        f"{percentile(series.steps, 0.95):.2f}",
        f"{series.spread:.0%}",
    )


def _floor_cells(series: Series) -> tuple[str, ...]:
    rate, _, p95, spread = _cells(series)
    return rate, p95, spread


def _ratios(mine: Series, other: Series) -> tuple[str, str]:
    return f"{mine.ratio_to(other):.2f}", f"{mine.paired_ratio_to(other):.2f}"


def _flatness(found: Findings) -> Grid:
    small, large = found.stores
    columns = ("", "queue", "queue by round", "floor", "floor by round")
    rows = [
        (
            measure,
            *_ratios(large.office_book.series[measure], small.office_book.series[measure]),
            *_ratios(large.floor_book.series[measure], small.floor_book.series[measure]),
        )
        for measure in MEASURES
    ]
    return Grid(
        f"What part of its speed is left at {large.rows:,} rows, of that at {small.rows:,}?",
        columns,
        rows,
    )


def _waking(found: Findings) -> Grid:
    rows = [
        (
            f"seen by another process, {len(found.waking.seen)} messages",
            _spread_of(found.waking.seen),
        ),
        ("beside it: a bare process woken by a pipe", _spread_of(found.waking.woken)),
        (
            "the same on PostgreSQL",
            _spread_of(found.postgres["latencies"]) if found.postgres else "not measured",
        ),
        (f"idle, bell and poll alone, {found.idle_seconds:.0f} s", _share(found.idle_listener)),
        (f"idle, `process_queue`, {found.idle_seconds:.0f} s", _share(found.idle_processor)),
    ]
    return Grid("How soon is a message seen, and what does waiting cost?", ("", ""), rows)


def _postgres(measured: dict[str, Any]) -> Grid:
    rows = [(measure, *_cells(measured["series"][measure])) for measure in MEASURES]
    return Grid(
        f"And on PostgreSQL {measured['version']}?",
        ("", "per s", "p50 ms", "p95 ms", "spread"),
        rows,
    )


def _goals(found: Findings) -> Grid:
    rows = []
    for store in found.stores:
        for measure in (CYCLE, CYCLE_MANY):
            series = store.office_book.series[measure]
            ratio = series.paired_ratio_to(store.floor_book.series[measure])
            what = f"{measure}, {store.rows:,} rows, beside the floor"
            rows.append((what, f"≥ {FLOOR_GOAL}", f"{ratio:.2f}", _met(ratio >= FLOOR_GOAL)))
    small, large = found.stores
    for measure in (CYCLE, CYCLE_MANY):
        left = large.office_book.series[measure].paired_ratio_to(small.office_book.series[measure])
        what = f"{measure}, {large.rows:,} beside {small.rows:,} rows"
        rows.append((what, f"≥ {1 - FLAT_GOAL}", f"{left:.2f}", _met(left >= 1 - FLAT_GOAL)))
    p99 = percentile(found.waking.seen, 0.99)
    rows.append(("wake-up p99", f"< {WAKE_GOAL:g} ms", f"{p99:.2f} ms", _met(p99 < WAKE_GOAL)))
    idle = found.idle_processor if found.idle_processor is not None else found.idle_listener
    met = "not measured" if idle is None else _met(idle < IDLE_GOAL)
    rows.append(("idle CPU", f"< {IDLE_GOAL:.1%}", _share(idle), met))
    return Grid("Are the goals met?", ("", "goal", "measured", "met"), rows)


def _met(is_met: bool) -> str:
    return "yes" if is_met else "no"


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2%} of a core"


def _spread_of(values: Sequence[float]) -> str:
    return (
        f"p50 {median(values):.2f} ms, p95 {percentile(values, 0.95):.2f} ms, "
        f"p99 {percentile(values, 0.99):.2f} ms"
    )
