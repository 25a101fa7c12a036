"""Django's SQLite backend with one habit more; see base.py."""

from __future__ import annotations
