"""One sweep by hand."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from queue_app import maintenance


class Command(BaseCommand):
    """Thin: calls maintenance.sweep and prints what it did."""

    help = (
        "Do one maintenance sweep now: recover stale messages, end what waited too long for a blocked "
        "agent, close idle conversations, prune finished rows. The office does this every minute by "
        "itself; it is safe to run at any time, as often as you like."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep once."""
        for name, count in maintenance.sweep().items():
            self.stdout.write(f"{name:>18}  {count}")
