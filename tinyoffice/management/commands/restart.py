"""`manage.py restart`: start processes of the office anew."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from tinyoffice import control
from tinyoffice.supervision import PROGRAMS

NAMES = [program.name for program in PROGRAMS]
LASTING = [program.name for program in PROGRAMS if not program.once]


class Command(BaseCommand):
    """Restart one process of the office, or all."""

    help = (
        "Restart one process of the running office, or web, processor and scheduler in order when none "
        "is named. To take up a new version, stop the office and run script/server again: "
        "that also installs and migrates."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the name of a process."""
        parser.add_argument("name", nargs="?", choices=NAMES, help="which process (default: all)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Stop, start, and say so."""
        names = [options["name"]] if options["name"] else LASTING
        control.restart(settings.TINYOFFICE.home, names)
        self.stdout.write(f"Restarted: {', '.join(names)}.")
