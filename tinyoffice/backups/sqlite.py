"""Copy and prove a SQLite database, by SQLite alone: opening a live file as a file drops its locks."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from tinyoffice.backups.contents import Contents, Report
from tinyoffice.backups.errors import BackupFailed, DatabaseDamaged

# Rows are never deleted from these, so a copy's count lies between those before and after it.
ONLY_GROW = ("django_migrations", "lanes", "audit")
_STEPS_BETWEEN_REPORTS = 100_000
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT}
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


class NotWhole(Exception):
    """A file is not a whole database of the office; the text says what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a database was like at one moment, cheap to take: sequences never go back."""

    schema: dict[str, str | None]
    sequences: dict[str, int]
    grown: dict[str, int]


def copy(database: Path, draft: Path, report: Report) -> Contents:
    """Copy a database that is in use into a draft, and prove the copy against it."""
    with told(database, draft.parent), opened(database, "rw") as source:
        before = _mark(source)
        size = _size(source)
        _need_room(draft.parent, size)
        _reporting(source, lambda: report("copying", draft.stat().st_size, size))
        source.execute("VACUUM INTO ?", (str(draft),))
        _reporting(source, None)
        after = _mark(source)
    try:
        with told(database, draft.parent):
            contents, mark = inspect(draft, report)
        if not _lies_between(before, mark, after):
            raise NotWhole("its tables, ids or counts are not those before or after the copying")
    except NotWhole as error:
        raise DatabaseDamaged(
            f"'{database}' was copied, but the copy is not whole: {error}. The copy was removed. "
            "The database or the disk may be damaged: `manage.py restore_backup` puts the last "
            "good copy back."
        ) from error
    return contents


def inspect(file: Path, report: Report) -> tuple[Contents, Mark]:
    """Read every page of a copy and return what it holds; raise NotWhole if it is not whole."""
    try:
        with opened(file, "ro") as database:
            _reporting(database, lambda: report("checking", 0, None))
            _refuse_broken(database)
            return _contents(database), _mark(database)
    except sqlite3.Error as error:
        if is_damage(error):
            raise NotWhole(str(error)) from error
        raise


def leave_wal(database: Path) -> None:
    """Fold the write-ahead log into the file; SQLite refuses while anybody else has it open."""
    with opened(database, "rw", timeout=1) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode != "delete":
            raise sqlite3.OperationalError("database is locked")


@contextmanager
def opened(file: Path, mode: str, timeout: float = 20) -> Iterator[sqlite3.Connection]:
    """Open an existing database without changing how it is kept; close it afterwards."""
    uri = f"{file.absolute().as_uri()}?mode={mode}"
    database = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def told(database: Path, directory: Path) -> Iterator[None]:
    """Turn what SQLite says into what was asked, what was found and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        asked = f"The database '{database}' was to be copied to '{directory}': {error}."
        if is_damage(error):
            raise DatabaseDamaged(
                f"{asked} It is damaged, or no office was ever started on it. Stop the office and "
                "put the last good copy back with `manage.py restore_backup`."
            ) from error
        raise BackupFailed(f"{asked} Nothing was left there. {_advice(error)}") from error


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether an error is about the content of a file rather than the way to it."""
    missing_table = _code(error) == sqlite3.SQLITE_ERROR and "no such table" in str(error)
    return _code(error) in _DAMAGED or missing_table


def _code(error: sqlite3.Error) -> int:
    # The low byte is the kind; the rest refines it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _advice(error: sqlite3.Error) -> str:
    if _code(error) in _NO_ROOM:
        return (
            "The disk is full, failing, or limits the size of files: make room, "
            "or choose another directory with --to."
        )
    if _code(error) == sqlite3.SQLITE_INTERRUPT:
        return "It was stopped by a signal; start it again when it suits."
    return "Mend that, and back up again."


def _need_room(directory: Path, size: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < size:
        raise OSError(errno.ENOSPC, f"{decimal(free)} are free and about {decimal(size)} needed")


def _reporting(database: sqlite3.Connection, tell: Callable[[], None] | None) -> None:
    # Also where Python sees to signals while SQLite works: an exception there interrupts it.
    database.set_progress_handler(tell, _STEPS_BETWEEN_REPORTS if tell else 0)


def _mark(database: sqlite3.Connection) -> Mark:
    return Mark(
        schema=dict(database.execute("SELECT type || ' ' || name, sql FROM sqlite_master")),
        sequences=dict(database.execute("SELECT name, seq FROM sqlite_sequence")),
        grown={table: _count(database, table) for table in ONLY_GROW},
    )


def _lies_between(before: Mark, copied: Mark, after: Mark) -> bool:
    return copied.schema in (before.schema, after.schema) and all(
        then.get(name, 0) <= number <= now.get(name, 0)
        for then, between, now in (
            (before.sequences, copied.sequences, after.sequences),
            (before.grown, copied.grown, after.grown),
        )
        for name, number in (dict.fromkeys(then, 0) | between).items()
    )


def _size(database: sqlite3.Connection) -> int:
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    (page,) = database.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page)


def _refuse_broken(database: sqlite3.Connection) -> None:
    (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise NotWhole(verdict)
    if (broken := database.execute("PRAGMA foreign_key_check").fetchone()) is not None:
        raise NotWhole(f"a row of '{broken[0]}' names one of '{broken[2]}' that is not there")


def _contents(database: sqlite3.Connection) -> Contents:
    migrations = database.execute("SELECT app, name FROM django_migrations")
    return Contents(
        database=f"SQLite {sqlite3.sqlite_version}",
        migrations=[f"{app}.{name}" for app, name in migrations],
        rows={table: _count(database, table) for table in _tables(database)},
    )


def _tables(database: sqlite3.Connection) -> list[str]:
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in names if not name.startswith("sqlite_")]


def _count(database: sqlite3.Connection, table: str) -> int:
    (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608
    return int(count)
