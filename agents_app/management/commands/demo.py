"""A small company to look at."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from agents_app import demo


class Command(BaseCommand):
    """Thin: calls demo.set_up and says what to look at."""

    help = (
        "Set up a small rehearsal company and let it work: three agents, a team, a conversation with "
        "handoffs, a message that ends dead and an agent whose lane is blocked. Costs nothing, uses no "
        "network, and can be run again. The office must be running for anything to move."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Set up and send."""
        for line in demo.set_up():
            self.stdout.write(line)
