"""Django's SQLite, remembering how it translated a statement: the hot ones come again and again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX, SQLiteCursorWrapper


class Cursor(SQLiteCursorWrapper):
    """A cursor that translates each text once."""

    def convert_query(self, query: str, *, param_names: Iterable[str] | None = None) -> str:
        """Return the statement with SQLite's placeholders."""
        if param_names is None:
            return _translated(query)
        return str(super().convert_query(query, param_names=param_names))


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection with our cursor."""

    def create_cursor(self, name: str | None = None) -> Any:
        """Return a new cursor."""
        return self.connection.cursor(factory=Cursor)


@lru_cache(maxsize=512)
def _translated(query: str) -> str:
    return FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
