"""A second process of the office: waits for the bell as a processor does, and says when it saw work."""

from __future__ import annotations

import sys
from time import monotonic_ns

from django.conf import settings

from queue_app import holders, queue, wakeup
from tests import factories

POLL = 0.5  # the shortest net a processor has under the bell


def main(_: list[str]) -> None:
    """Take and answer whatever comes until ended; print for each the moment it was seen."""
    holder = holders.become("listener", settings.TINYOFFICE.home)
    bell = wakeup.hang_up()
    _say("listening")
    while True:
        lanes = queue.ready_lanes()
        seen = monotonic_ns()
        for lane in lanes:
            if claimed := queue.claim(lane, holder):
                queue.complete(claimed, factories.answer(claimed))
                _say(str(seen))
        if not lanes:
            bell.wait(POLL)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
