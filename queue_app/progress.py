"""What runs are doing right now: the newest text and tool of each, written together a few times a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connection, transaction

from queue_app import clock, events, sql
from queue_app.events import NewEvent, clip
from queue_app.values import Claim

logger = logging.getLogger(__name__)

EVERY = 0.25

# Called with the newest text and, when one is used, the tool's name.
Report = Callable[[str, str | None], None]


class ProgressWriter:
    """Keeps the newest of each run; one thread writes it, without waiting for the disk."""

    def __init__(self) -> None:
        self.newest: dict[int, NewEvent] = {}
        self.thread = ThreadPoolExecutor(1, "progress")

    def reporter(self, claim: Claim) -> Report:
        """Return what a handler tells its run's progress to."""
        primary = claim.primary
        about = {"runId": claim.run_id, "messageId": primary.message_id}

        def report(text: str, tool: str | None = None) -> None:
            data = {**about, "text": clip(text), "tool": tool}
            self.newest[claim.run_id] = NewEvent(
                "agent_progress", primary.agent, primary.conversation_id, data
            )

        return report

    async def run(self) -> None:
        """Write what came since the last time, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(EVERY)
            if self.newest:
                told, self.newest = list(self.newest.values()), {}
                await loop.run_in_executor(self.thread, _write, told)


def _write(told: list[NewEvent]) -> None:
    try:
        sql.quick_commits()
        with transaction.atomic(), connection.cursor() as cursor:
            events.record(cursor, told, now=clock.now())
    except DatabaseError as error:
        # Progress is told again in a moment; the run itself must not suffer.
        logger.warning("progress not written runs=%d error=%s", len(told), error)
        connection.close()
