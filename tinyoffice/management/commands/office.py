"""`manage.py office`: the whole office in one command."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from tinyoffice import office


class Command(BaseCommand):
    """Start the office and keep it until it is stopped."""

    help = (
        "Start the office: web server, queue processor and scheduler, restarted when one dies. "
        "Prepares the database, the owner's account and token and the default agent, then prints a "
        "one-time login link. Ctrl-C, SIGTERM or `manage.py stop` close it in order. "
        "Where it listens: TINYAGI_API_HOST and TINYAGI_API_PORT; where it keeps things: TINYAGI_HOME."
    )
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped."""
        office.open_office(settings.TINYOFFICE, self._say)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
