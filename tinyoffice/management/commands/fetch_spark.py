"""`manage.py fetch_spark`: install the Spark part, which script/server leaves for later."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from spark import fetching
from tinyoffice import parent


class Command(BaseCommand):
    """Fetch the requirement lines marked `# spark`."""

    help = (
        "Install the Spark part by pip: the lines of requirements.txt marked `# spark`, a large "
        "download. The office does it by itself behind its start; `manage.py status` says how far it is."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit 1 when every try failed."""
        signal.signal(signal.SIGTERM, _stop)
        parent.end_with_parent(grace=8.0)
        os.nice(10)
        if not fetching.fetch(self._say):
            sys.exit(1)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> None:
    # An interrupted pip removes what it unpacked; a killed one leaves it in the temporary directory.
    if os.getpgrp() == os.getpid():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(0, signal.SIGINT)
    sys.exit(1)
