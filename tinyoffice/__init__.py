"""The project: puts the parts together. Importing it chooses the process's one SQLite library."""

from __future__ import annotations

from tinyoffice import sqlite_library

sqlite_library.install()
