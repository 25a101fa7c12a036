"""A process shows that it lives: a row in `processes` with the time it was last seen."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, connection

from queue_app import clock, holders, sql
from queue_app.holders import Holder
from queue_app.models import Process

logger = logging.getLogger(__name__)

EVERY = 3.0
_LAST_WORD = 5.0


class Pulse:
    """Keeps one process's row from a thread of its own, with a database connection of its own."""

    def __init__(self, holder: Holder, *, every: float = EVERY) -> None:
        self.row = Process(
            holder=holder.name,
            name=holder.role,
            host=holder.host,
            pid=holder.pid,
            started=clock.now(),
        )
        self.every = every
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        """Begin to beat, and take away the rows of processes that ended without a word."""
        self.thread.start()

    def stop(self) -> None:
        """Take the row away and end; for a process that ends as it should."""
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join(_LAST_WORD)

    def _run(self) -> None:
        self._attempt(sql.quick_commits)
        self._attempt(_bury)
        while True:
            self._attempt(self._beat)
            if self.stopping.wait(self.every):
                break
        self._attempt(self._leave)
        connection.close()

    def _beat(self) -> None:
        self.row.pulse = clock.now()
        Process.objects.bulk_create(
            [self.row],
            update_conflicts=True,
            unique_fields=["holder"],
            update_fields=["pulse"],
        )

    def _leave(self) -> None:
        Process.objects.filter(holder=self.row.holder).delete()

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except DatabaseError as error:
            # A pulse that is missed is seen; a thread that died of it would say nothing any more.
            logger.warning("pulse missed holder=%s error=%s", self.row.holder, error)
            connection.close()


def _bury() -> None:
    home = settings.TINYOFFICE.home
    gone = [row.holder for row in Process.objects.all() if holders.is_gone(row.holder, home)]
    Process.objects.filter(holder__in=gone).delete()
