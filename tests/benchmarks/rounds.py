"""Office and floor in turns, block by block, so that a slow moment of the machine hits both."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from queue_app.wakeup import Bell
from tests.benchmarks import tape
from tests.benchmarks.stores import Store
from tests.benchmarks.work import BLOCKS, Desk

_SYNCS = 20
_PAGE = b"\0" * 4096


def run(
    stores: Sequence[Store],
    desk: Desk,
    bell: Bell,
    *,
    rounds: int,
    sizes: Sequence[int],
    tell: Callable[[], None],
) -> None:
    """Record the tapes, then play so many rounds after one that only warms up."""
    for store in stores:
        store.enter()
        store.rewind()
        store.tape = [
            tape.record(store.office, block(desk, size))
            for block, size in zip(BLOCKS, sizes, strict=True)
        ]
        tell()
    for number in range(rounds + 1):
        for store in stores:
            store.rewind()
        for place, size in enumerate(sizes):
            for store in _turned(stores, number):
                store.enter()
                _take_turns(store, desk, place, size, number)
                bell.wait(0)
        tell()
    for store in stores:
        _must_have_done_the_same(store)


def fsync_times(directory: Path) -> list[float]:
    """Return milliseconds that this disk takes to keep a page for good."""
    times = []
    with (directory / "fsync").open("w+b", buffering=0) as file:
        file.write(_PAGE * _SYNCS)
        os.fsync(file.fileno())
        for number in range(_SYNCS):
            os.pwrite(file.fileno(), _PAGE, number * len(_PAGE))
            begun = perf_counter()
            os.fsync(file.fileno())
            times.append((perf_counter() - begun) * 1000)
    return times


def _take_turns(store: Store, desk: Desk, place: int, size: int, number: int) -> None:
    def office() -> None:
        timings = tape.play(BLOCKS[place](desk, size))
        if number:
            store.office_book.add(timings)

    def floor() -> None:
        timings = tape.replay(store.floor, store.tape[place])
        if number:
            store.floor_book.add(timings)

    for side in (office, floor) if number % 2 else (floor, office):
        side()


def _turned(stores: Sequence[Store], number: int) -> Sequence[Store]:
    return stores if number % 4 < 2 else stores[::-1]


def _must_have_done_the_same(store: Store) -> None:
    count = "SELECT status, count(*) FROM messages WHERE id > ? GROUP BY status"
    office = store.office.connection.execute(count, (store.rows,)).fetchall()
    floor = store.floor.execute(count, (store.rows,)).fetchall()
    assert office == floor, f"the office moved {office}, the floor {floor}"
