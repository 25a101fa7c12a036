"""The databases of a run: for each size the office's own file and its twin for the floor."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.benchmarks import past
from tests.benchmarks.figures import Book
from tests.benchmarks.tape import Take

# Only for the filling: nobody waits for it and it is thrown away.
_FILLING = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;
PRAGMA temp_store = MEMORY"""

_GROWING = (
    "intakes",
    "messages",
    "agent_messages",
    "runs",
    "run_messages",
    "responses",
    "events",
)


@dataclass(slots=True, kw_only=True)
class Store:
    """One size of history: the office's connection, the floor's, and what was measured on each."""

    rows: int
    size: int
    office: BaseDatabaseWrapper
    floor: sqlite3.Connection
    office_book: Book = field(default_factory=Book)
    tape: list[list[Take]] = field(default_factory=list)
    office_book: Book = field(default_factory=Book)
    floor_book: Book = field(default_factory=Book)

    def enter(self) -> None:
        """Make this the office's database; its connection stays open while another is in use."""
        connections[DEFAULT_DB_ALIAS] = self.office

    def rewind(self) -> None:
        """Take both files back to their first size and ids, with nothing left to be checkpointed."""
        self.office.ensure_connection()
        for database in (self.office.connection, self.floor):
            _rewind(database, self.rows)

    def close(self) -> None:
        """Close both connections."""
        self.office.close()
        self.floor.close()


def migrate() -> Path:
    """Make the tables in the file the settings name; return it, closed."""
    call_command("migrate", verbosity=0)
    connections.close_all()
    return Path(settings.DATABASES[DEFAULT_DB_ALIAS]["NAME"])


def build(tables: Path, file: Path, rows: int, tell: Callable[[int], None]) -> Store:
    """Fill a file with so many finished rows, make its twin, and open both with the real settings."""
    database = sqlite3.connect(file, isolation_level=None)
    if file != tables:
        _copy(tables, database)
    database.executescript(_FILLING)
    for written in past.fill(database.execute, rows):
        tell(written)
    twin = file.with_suffix(".floor")
    floor = sqlite3.connect(twin, isolation_level=None)
    database.backup(floor)
    database.close()
    floor.executescript(settings.SQLITE_PRAGMAS)
    return Store(rows=rows, size=file.stat().st_size, office=_office(file), floor=floor)


def _rewind(database: sqlite3.Connection, rows: int) -> None:
    execute = database.cursor().execute
    execute("BEGIN IMMEDIATE")
    execute(
        "DELETE FROM conversations WHERE id IN (SELECT message_id FROM messages WHERE id > ?)",
        (rows,),
    )
    for table in _GROWING:
        kept = 2 * rows if table == "agent_messages" else rows
        execute(f"DELETE FROM {table} WHERE id > ?", (kept,))
        execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (kept, table))
    execute("COMMIT")
    execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


def _copy(tables: Path, database: sqlite3.Connection) -> None:
    source = sqlite3.connect(tables)
    source.backup(database)
    source.close()


def _office(file: Path) -> BaseDatabaseWrapper:
    office = connections.create_connection(DEFAULT_DB_ALIAS)
    office.settings_dict = {**office.settings_dict, "NAME": file}
    return office
