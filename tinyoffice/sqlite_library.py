"""Choose the one SQLite library of this process, before anything else can import another.

Versions before 3.51.3 can corrupt a WAL database, and two copies in one process drop each other's
locks: committed rows vanish. So the choice is made once and put where every import finds it.
"""

from __future__ import annotations

import importlib
import sys

SAFE_WAL = (3, 51, 3)


def install() -> None:
    """Make `import sqlite3` give a library that is safe in WAL mode, where one is to be had."""
    if _version_of("sqlite3") >= SAFE_WAL:
        return
    try:
        newer = importlib.import_module("pysqlite3")
    except ImportError:
        return
    sys.modules["sqlite3"] = newer
    sys.modules["sqlite3.dbapi2"] = importlib.import_module("pysqlite3.dbapi2")


def version() -> tuple[int, ...]:
    """Return the version of the library in use."""
    return _version_of("sqlite3")


def wal_is_safe() -> bool:
    """Say whether this process's library may use WAL; if not, the rollback journal is used."""
    return version() >= SAFE_WAL


def _version_of(module: str) -> tuple[int, ...]:
    found: tuple[int, ...] = importlib.import_module(module).sqlite_version_info
    return found
