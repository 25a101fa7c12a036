#!/usr/bin/env python3
"""Runs the office's commands."""

from __future__ import annotations

import os
import sys

import tinyoffice  # noqa: F401  chooses the SQLite library before Django imports one
from tinyoffice.errors import TinyOfficeError
from tinyoffice.storage import unusable


def main() -> None:
    """Run one command; an error of ours is told as a sentence, without a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tinyoffice.settings")
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError, OperationalError, connection

    try:
        execute_from_command_line(sys.argv)
    except TinyOfficeError as error:
        sys.exit(f"tinyoffice: {error}")
    except DatabaseError as error:
        if type(error) not in (DatabaseError, OperationalError):
            raise  # a fault of ours, not of the file, the disk or the server
        sys.exit(f"tinyoffice: {unusable(connection.settings_dict['NAME'], str(error))}")


if __name__ == "__main__":
    main()
