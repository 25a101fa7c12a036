"""The floor: the very statements the queue sent, replayed by the bare driver on a twin of the file.

The statements are taken from the running code, so the floor cannot drift from it. The twin begins
as the file was when the recording began; the ids it gives are therefore those on the tape.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from tests.benchmarks.figures import Timing
from tests.benchmarks.work import Step


class Statement(NamedTuple):
    """One call of the driver, with its parameters or a list of them."""

    sql: str
    parameters: Any
    many: bool


class Take(NamedTuple):
    """One step as it was sent to the database."""

    measure: str
    messages: int
    transactions: tuple[tuple[Statement, ...], ...]


def play(steps: Iterable[Step]) -> list[Timing]:
    """Do the steps, each timed."""
    timings = []
    for step in steps:
        begun = perf_counter()
        step.act()
        timings.append(Timing(step.measure, step.messages, perf_counter() - begun))
    return timings


def record(connection: BaseDatabaseWrapper, steps: Iterable[Step]) -> list[Take]:
    """Do the steps and keep what they send."""
    takes = []
    for step in steps:
        with _listening(connection) as heard:
            step.act()
        takes.append(Take(step.measure, step.messages, tuple(_transactions(heard))))
    return takes


def replay(floor: sqlite3.Connection, takes: Iterable[Take]) -> list[Timing]:
    """Send the same again, without the queue and without Django, each step timed."""
    timings = []
    cursor = floor.cursor()
    for take in takes:
        begun = perf_counter()
        for transaction in take.transactions:
            for sql, parameters, many in transaction:
                if many:
                    cursor.executemany(sql, parameters)
                else:
                    cursor.execute(sql, parameters).fetchall()
            cursor.execute("COMMIT")
        timings.append(Timing(take.measure, take.messages, perf_counter() - begun))
    return timings


@contextmanager
def _listening(connection: BaseDatabaseWrapper) -> Iterator[list[Statement]]:
    heard: list[Statement] = []

    def hear(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        given = list(params or ())  # a generator can be read only once
        heard.append(Statement(sql.replace("%s", "?").replace("%%", "%"), given, many))
        return execute(sql, given if many else params, many, context)

    with connection.execute_wrapper(hear):
        yield heard


def _transactions(heard: list[Statement]) -> Iterator[tuple[Statement, ...]]:
    begins = [place for place, sent in enumerate(heard) if sent.sql.startswith("BEGIN")]
    assert begins[:1] == [0], "a step began with a statement outside a transaction"
    for first, last in zip(begins, [*begins[1:], len(heard)], strict=True):
        yield tuple(heard[first:last])
