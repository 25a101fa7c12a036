"""`manage.py restore_backup`: put a backup back."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from tinyoffice import backups
from tinyoffice.backups import Backup, progress
from tinyoffice.backups.errors import RestoreRefused


class Command(BaseCommand):
    """Replace the database by a backup."""

    help = (
        "Replace the database by a backup, after proving the backup. The office must be stopped. "
        "The present database is kept as `before-restore-<UTC time>` among the backups, from where "
        "this command brings it back. What was being worked on when the backup was made is "
        "taken up again at the next start."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take which backup, and leave to replace."""
        parser.add_argument(
            "backup",
            nargs="?",
            default="latest",
            metavar="FILE",
            help="a file, or latest (default)",
        )
        parser.add_argument("--yes", action="store_true", help="do not ask before replacing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, restore, and say what is there now."""
        conf = settings.TINYOFFICE
        backup = backups.find(conf, options["backup"])
        if not options["yes"]:
            _ask(backup)
        with progress.shown_on(sys.stderr) as report:
            restored = backups.restore(conf, backup, report)
        self.stdout.write(f"Restored {_described(backup)}.")
        if restored.aside is not None:
            self.stdout.write(f"What was there before is kept as '{restored.aside}'.")


def _ask(backup: Backup) -> None:
    if not sys.stdin.isatty():
        raise RestoreRefused(
            "Replacing the database is asked about first, and here is nobody to ask. "
            "Add --yes to say so. Nothing was changed."
        )
    answer = input(f"Replace the database by {_described(backup)}? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise RestoreRefused("You did not say yes, so nothing was changed.")


def _described(backup: Backup) -> str:
    manifest = backup.manifest
    return (
        f"the backup of {manifest.made_at} ('{backup.file}', version {manifest.version}, "
        f"{manifest.rows['messages']} messages)"
    )
