"""`manage.py backup`: a proven copy of the database."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from rich.filesize import decimal

from tinyoffice import backups
from tinyoffice.backups import making, progress, shelf


class Command(BaseCommand):
    """Make a backup and keep the newest."""

    help = (
        "Copy the database while the office runs, prove the copy, and keep the newest. A backup is "
        "`tinyagi-<UTC time>.db` (PostgreSQL: `.dump`) with a manifest beside it, readable by the "
        "owner alone. Exits non-zero, and leaves nothing, when no proven copy could be made. "
        "`manage.py restore_backup` puts one back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the place and how many to keep."""
        parser.add_argument(
            "--to", metavar="DIR", type=_place, help="where (default: backups in TINYAGI_HOME)"
        )
        parser.add_argument(
            "--keep", metavar="N", type=_count, default=making.KEEP, help="how many (default: 7)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, and say where it is."""
        signal.signal(signal.SIGTERM, _stop)
        conf = settings.TINYOFFICE
        directory = options["to"] or shelf.directory_of(conf.home).absolute()
        with progress.shown_on(sys.stderr) as report:
            backup = backups.make(conf, directory, keep=options["keep"], report=report)
        self.stdout.write(
            f"Backed up and verified: '{backup.file}' ({decimal(backup.manifest.size)}, "
            f"{backup.manifest.rows['messages']} messages)."
        )


def _place(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no directory: {error}") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 up")
    return int(text)


def _stop(number: int, frame: FrameType | None) -> None:
    # An exception, so that the draft is removed on the way out.
    sys.exit(128 + number)
