"""The queue processor's process."""

from __future__ import annotations

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queue_app.processor import Processor
from tinyoffice import parent


class Command(BaseCommand):
    """Thin: wires signals to the processor and runs it."""

    help = (
        "Keep the queue: show that this processor lives, and give back within milliseconds what a dead "
        "one held. The office starts it by itself; several at once are safe. SIGTERM ends it."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped by a signal."""
        parent.end_with_parent()
        processor = Processor(settings.TINYOFFICE)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: processor.stop())
        processor.run()
