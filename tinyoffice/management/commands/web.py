"""`manage.py web`: the web server of the office."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from tinyoffice import web


class Command(BaseCommand):
    """Serve pages and API until stopped."""

    help = (
        "Serve the portal, the admin and the API on TINYAGI_API_HOST and TINYAGI_API_PORT. "
        "`manage.py office` starts it; by itself it is for machines that run only the web part."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped."""
        web.serve(settings.TINYOFFICE)
