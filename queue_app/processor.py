"""The process that keeps the queue: it shows that it lives and recovers what others lost."""

from __future__ import annotations

import logging
import threading

from django.db import connection

from queue_app import clock, events, holders, wakeup
from queue_app.events import NewEvent
from queue_app.pulse import Pulse
from queue_app.watch import Heart, Watcher
from tinyoffice.conf import Conf

logger = logging.getLogger(__name__)

# Also how long a signal may wait to be seen.
LONGEST_WAIT = 0.5


class Processor:
    """Looks when woken, and every few seconds anyway."""

    def __init__(self, conf: Conf) -> None:
        self.holder = holders.become("processor", conf.home)
        self.watcher = Watcher(conf.home, conf.queue)
        self.heart = Heart(self.holder, conf.queue, on_starved=self.stop)
        self.pulse = Pulse(self.holder)
        self.bell = wakeup.hang_up()
        self.wait = min(LONGEST_WAIT, conf.queue.beat_every / 1000)
        self.stopping = threading.Event()

    def run(self) -> None:
        """Work until stopped."""
        self.heart.start()
        self.pulse.start()
        self._announce()
        try:
            while not self.stopping.is_set():
                self.tick()
                self.bell.wait(self.wait)
        finally:
            self.heart.stop()
            self.pulse.stop()
            self.bell.close()
            self.holder.release()
        logger.info("processor ended holder=%s", self.holder.name)

    def tick(self) -> int:
        """Give back what lost its holder; return how many lanes."""
        return self.watcher.look()

    def stop(self) -> None:
        """End after the present tick; asked twice, once is enough."""
        self.stopping.set()

    def _announce(self) -> None:
        data = {"holder": self.holder.name, "pid": self.holder.pid}
        with connection.cursor() as cursor:
            events.record(cursor, [NewEvent("processor_start", None, None, data)], now=clock.now())
        logger.info("processor started holder=%s", self.holder.name)
