"""`manage.py scheduler`: the clock of the office."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from tinyoffice import scheduler


class Command(BaseCommand):
    """Run what is due until stopped."""

    help = (
        "Run the clock: maintenance every minute and whatever else is due, by django-q2. "
        "`manage.py office` starts it; by itself it is for machines that run only this part."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped."""
        scheduler.run(settings.TINYOFFICE)
