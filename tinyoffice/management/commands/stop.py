"""`manage.py stop`: close the office from another terminal."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from tinyoffice import control


class Command(BaseCommand):
    """Stop the office in order."""

    help = (
        "Stop the office that runs on TINYAGI_HOME: scheduler, queue processor (running work has 30 s "
        "to finish, then it goes back to the queue), web server. Returns when the last has ended."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Stop and wait."""
        control.stop(settings.TINYOFFICE.home)
        self.stdout.write("The office is closed.")
