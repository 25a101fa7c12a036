"""Copies of the database that can be trusted: made while the office runs, proven, kept, put back."""

from __future__ import annotations

from tinyoffice.backups.making import make
from tinyoffice.backups.restoring import restore
from tinyoffice.backups.shelf import Backup, find, latest_verified

__all__ = ["Backup", "find", "latest_verified", "make", "restore"]
