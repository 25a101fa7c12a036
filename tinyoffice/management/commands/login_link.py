"""`manage.py login_link`: another way in for the owner."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from tinyoffice import founding, office


class Command(BaseCommand):
    """Print a login link."""

    help = (
        "Print a link that logs the owner in, once, within ten minutes. "
        "Open it in a browser and press the button; the link alone, opened by a preview, does nothing."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make a link and print it."""
        founding.ensure_owner()
        self.stdout.write(office.login_link(settings.TINYOFFICE.web))
