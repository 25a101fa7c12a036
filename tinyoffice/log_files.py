"""Read the log files of the office: their last lines, and what is added to them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

_CHUNK = 64 * 1024
_LOOK_EVERY = 0.25


class LogFile:
    """One log, read from where the last reading ended; it may be missing or begin anew at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inode = 0
        self.position = 0

    def last(self, count: int) -> list[str]:
        """Return the last whole lines, reading no more of the file than they take."""
        try:
            with self.path.open("rb") as handle:
                self.inode = os.fstat(handle.fileno()).st_ino
                tail, _, unfinished = _tail(handle, count).rpartition(b"\n")
                self.position = handle.seek(0, os.SEEK_END) - len(unfinished)
        except FileNotFoundError:
            return []
        return _lines(tail)[-count:] if count else []

    def added(self) -> list[str]:
        """Return the whole lines that came since; a rotated file is read from its beginning."""
        try:
            with self.path.open("rb") as handle:
                found = os.fstat(handle.fileno())
                if found.st_ino != self.inode or found.st_size < self.position:
                    self.inode, self.position = found.st_ino, 0
                handle.seek(self.position)
                whole, newline, _ = handle.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self.position += len(whole) + len(newline)
        return _lines(whole) if newline else []


def follow(logs: Sequence[LogFile]) -> Iterator[tuple[LogFile, str]]:
    """Yield each line as it is added to one of the logs, for ever."""
    while True:
        found = [(log, line) for log in logs for line in log.added()]
        yield from found
        if not found:
            time.sleep(_LOOK_EVERY)


def _tail(handle: BinaryIO, count: int) -> bytes:
    position = handle.seek(0, os.SEEK_END)
    tail = b""
    while position > 0 and tail.count(b"\n") <= count:
        step = min(_CHUNK, position)
        position -= step
        handle.seek(position)
        tail = handle.read(step) + tail
    return tail


def _lines(text: bytes) -> list[str]:
    return text.decode(errors="replace").split("\n") if text else []
