"""The places the office keeps things in: made private, checked before use, refused in a sentence."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tinyoffice.errors import TinyOfficeError

T = TypeVar("T")

DIRECTORIES = ("files", "logs", "archive", "backups", "locks")
REFERENCE_TABLES = frozenset({"messages", "responses", "chat_messages", "agent_messages"})
# A full check reads every page, about a second per gigabyte; larger files are checked with each backup.
CHECKED_AT_START = 256 * 1024 * 1024
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


class StorageUnusable(TinyOfficeError):
    """Home or the database cannot be read or written."""

    code = "storage_unusable"


class ForeignDatabase(TinyOfficeError):
    """The database file belongs to another product."""

    code = "foreign_database"


def prepare_home(home: Path) -> None:
    """Make home and its directories, readable by the owner alone."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in DIRECTORIES:
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unwritable(home, error) from error


def secret(path: Path, make: Callable[[], str] = lambda: secrets.token_urlsafe(48)) -> str:
    """Return the secret in a file of mode 0600, making it once; all processes get the same one."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        _write_once(path, make() + "\n")
        return path.read_text().strip()
    except OSError as error:
        raise _unwritable(path, error) from error


def _write_once(path: Path, text: str) -> None:
    # A link appears whole or not at all, and never over an existing file: the quicker process wins.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        draft.unlink(missing_ok=True)


def refuse_foreign(file: Path) -> None:
    """Refuse a database of the reference product before anything connects to it and changes it."""
    if not file.exists():
        return
    try:
        found = _ask(file, _leaving_no_trace(file), lambda db: {n for (n,) in db.execute(_TABLES)})
    except StorageUnusable:
        return  # damaged is not foreign: `restore_backup` must be able to start and mend it
    if found & REFERENCE_TABLES and "django_migrations" not in found:
        raise ForeignDatabase(
            f"The database '{file}' holds tables of another product "
            f"({', '.join(sorted(found & REFERENCE_TABLES))}) and none of TinyOffice's migrations. "
            "Nothing was changed. Move the file away, or set TINYAGI_HOME to another directory."
        )


def _leaving_no_trace(file: Path) -> str:
    # Even a reader puts -wal and -shm beside a WAL database, and leaves them there. Where nobody
    # has it open it is read as a file that does not change.
    beside = [file.with_name(file.name + suffix) for suffix in ("-wal", "-journal")]
    return "mode=ro" if any(other.exists() for other in beside) else "mode=ro&immutable=1"


def check_database(file: Path) -> None:
    """Refuse a file that is damaged, held by another program or not writable; change nothing."""
    if not file.exists():
        return
    verdict = _ask(file, "mode=rw", _verdict)
    if verdict != "ok":
        raise unusable(file, verdict)


def _verdict(database: sqlite3.Connection) -> str:
    # A write, taken back at once: a read-only or held file says so here, not at the first message.
    # The lock alone would not do, for SQLite grants it on a read-only file and means a read.
    database.execute("BEGIN IMMEDIATE")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    database.execute(f"PRAGMA user_version = {version}")
    database.rollback()
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    size = database.execute("PRAGMA page_size").fetchone()[0] * pages
    if size > CHECKED_AT_START:
        return "ok"
    return " ".join(str(database.execute("PRAGMA quick_check(1)").fetchone()[0]).split())


def _ask(file: Path, mode: str, question: Callable[[sqlite3.Connection], T]) -> T:
    try:
        database = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True, timeout=5)
        try:
            return question(database)
        finally:
            database.close()
    except sqlite3.Error as error:
        raise unusable(file, str(error)) from error


def unusable(file: Path | str, found: str) -> StorageUnusable:
    """Return what to say of a database that cannot be used."""
    return StorageUnusable(
        f"The database '{file}' cannot be used: {found}. If it is damaged, stop the office and run "
        "`manage.py restore_backup`; if another program holds it, end that program; "
        "if it is read-only or the disk is full, mend that."
    )


def _unwritable(path: Path, error: OSError) -> StorageUnusable:
    return StorageUnusable(
        f"'{path}' cannot be used: {error.strerror}. Make it writable for this user, "
        "or set TINYAGI_HOME to a directory that is."
    )
