"""System checks: what is wrong with a deployment, and what to change."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import connection
from django.db.backends.sqlite3.base import DatabaseWrapper

from tinyoffice import sqlite_library


def register() -> None:
    """Hook the checks into Django's."""
    checks.register(one_sqlite_library)
    checks.register(safe_wal)
    checks.register(durable_sqlite, checks.Tags.database)


def one_sqlite_library(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Two copies of SQLite in one process drop each other's locks: committed rows vanish."""
    if DatabaseWrapper.Database.sqlite_version_info == sqlite3.sqlite_version_info:
        return []
    return [
        checks.Error(
            f"This process has two SQLite libraries: Django uses {DatabaseWrapper.Database.sqlite_version}, "
            f"`import sqlite3` gives {sqlite3.sqlite_version}.",
            hint="Import `tinyoffice` before anything that imports sqlite3.",
            id="tinyoffice.E001",
        )
    ]


def safe_wal(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Versions before 3.51.3 can corrupt a database in WAL mode."""
    if connection.vendor != "sqlite" or sqlite_library.wal_is_safe():
        return []
    found = ".".join(map(str, sqlite_library.version()))
    return [
        checks.Warning(
            f"SQLite {found} can corrupt a database in WAL mode, so the slower rollback journal is used.",
            hint="Install a Python whose SQLite is 3.51.3 or newer, or use PostgreSQL (DATABASE_URL).",
            id="tinyoffice.W001",
        )
    ]


def durable_sqlite(databases: Sequence[str] | None, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """What is acknowledged must be on disk: IMMEDIATE transactions and synchronous=FULL."""
    if connection.vendor != "sqlite":
        return []
    options = connection.settings_dict["OPTIONS"]
    if options.get("transaction_mode") == "IMMEDIATE" and "synchronous=FULL" in str(
        options.get("init_command")
    ):
        return []
    return [
        checks.Error(
            "The database is not opened with IMMEDIATE transactions and synchronous=FULL.",
            hint="Leave DATABASES as tinyoffice/settings.py makes it.",
            id="tinyoffice.E002",
        )
    ]
