"""The queue processor's process."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from agents_app.handler import OfficeHandler
from channels_app import reach
from queue_app.processor import Processor
from tinyoffice import parent


class Command(BaseCommand):
    """Thin: wires handler and signals to the processor and runs it."""

    help = (
        "Process the queue: claim what waits, ask each agent's program in its workspace, keep the "
        "answers, and give back what a dead processor held. The office starts it by itself; several "
        "at once are safe. SIGTERM lets running agents finish for TINYAGI_DRAIN_SECONDS, then gives "
        "their messages back."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped by a signal."""
        parent.end_with_parent()
        asyncio.run(self._run())

    async def _run(self) -> None:
        conf = settings.TINYOFFICE
        processor = Processor(conf, OfficeHandler(conf, reach.of_message))
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, processor.stop)
        await processor.run()
