"""A message from the terminal."""

from __future__ import annotations

import getpass
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents_app import intake
from agents_app.intake import Inbound
from queue_app import wakeup
from queue_app.models import Conversation, Response


class Command(BaseCommand):
    """Thin: one Inbound, and the answers as they come."""

    help = (
        'Send a message: send "hello", send "@coder fix it", send "[@coder: a] [@writer: b]". '
        "It is on disk when its id is printed. With --wait the answers are printed as they come, "
        "until nothing of the conversation is left to do."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the text, and whether to wait."""
        parser.add_argument("text", help="what the agent should read")
        parser.add_argument("--agent", help="agent or team; wins over @tags in the text")
        parser.add_argument("--wait", action="store_true", help="print the answers")
        parser.add_argument(
            "--timeout", type=float, default=600.0, help="seconds to wait at most (600)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Submit, then wait if asked to."""
        bell = wakeup.hang_up()
        try:
            accepted = intake.submit(
                Inbound(
                    source="cli",
                    channel="cli",
                    sender=getpass.getuser(),
                    text=options["text"],
                    agent=options["agent"],
                )
            )
            self.stderr.write(f"accepted as {accepted.message_id}")
            if options["wait"]:
                self._print_answers(accepted.conversation_id, bell, options["timeout"])
        finally:
            bell.close()

    def _print_answers(self, conversation_id: str, bell: wakeup.Bell, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        seen = 0
        while True:
            still_open = Conversation.objects.filter(pk=conversation_id, open__gt=0).exists()
            new = Response.objects.filter(conversation_id=conversation_id, pk__gt=seen)
            for response in new.order_by("pk"):
                seen = response.pk
                speaker = f"@{response.agent}" if response.agent else "office"
                self.stdout.write(f"{speaker}: {response.message}\n")
            if not still_open:
                return
            if time.monotonic() > deadline:
                raise CommandError(
                    f"No end after {timeout:g} s; the message stays in the queue. "
                    "See `manage.py status` for why it waits."
                )
            bell.wait(0.5)
