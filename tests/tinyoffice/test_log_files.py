"""Reading logs: the last lines without the rest, and every added line exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyoffice.log_files import LogFile


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    """A log with five lines."""
    (tmp_path / "web.log").write_text("".join(f"line {number}\n" for number in range(5)))
    return LogFile(tmp_path / "web.log")


def add(log: LogFile, text: str) -> None:
    with log.path.open("a") as handle:
        handle.write(text)


@pytest.mark.parametrize(("count", "first"), [(0, 5), (1, 4), (3, 2), (5, 0), (500, 0)])
def test_the_last_lines(log: LogFile, count: int, first: int):
    assert log.last(count) == [f"line {number}" for number in range(first, 5)]


def test_a_log_that_is_missing_has_no_lines(tmp_path: Path):
    missing = LogFile(tmp_path / "nothing.log")

    assert missing.last(5) == []
    assert missing.added() == []


def test_long_lines_are_whole(log: LogFile):
    add(log, "x" * 200_000 + "\n" + "y" * 100_000 + "\n")

    assert [len(line) for line in log.last(2)] == [200_000, 100_000]


def test_each_added_line_is_told_once_and_only_when_it_is_whole(log: LogFile):
    add(log, "half a ")
    assert log.last(1) == ["line 4"]
    assert log.added() == []

    add(log, "line\nand another\nand")

    assert log.added() == ["half a line", "and another"]
    assert log.added() == []


def test_a_rotated_log_is_read_from_its_beginning(log: LogFile):
    log.last(1)
    log.path.rename(log.path.with_suffix(".log.1"))
    assert log.added() == []

    log.path.write_text("new\n")

    assert log.added() == ["new"]
