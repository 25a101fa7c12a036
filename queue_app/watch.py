"""Beats of those who hold lanes, and the watch over those who no longer do.

Expiry is observed, not calculated: a lane is given back when its run and beat stood still while the
watcher itself was awake, or at once when its holder's lock is free. So sleep, clock jumps and hosts
whose clocks differ do no harm.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, connection

from queue_app import holders, queue, sql
from queue_app.holders import Holder
from queue_app.models import Lane
from tinyoffice.conf import QueueConf

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sighting:
    """What a lane looked like, and for how long it has looked the same."""

    run_id: int | None
    beat: int
    still: float = 0.0


def _nothing_to_end(run_id: int) -> None:
    """Do nothing, for a watcher whose runs start no processes."""


class Watcher:
    """Gives back the lanes of holders that are gone or stand still."""

    def __init__(
        self,
        home: Path,
        conf: QueueConf,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        end_lost: Callable[[int], None] = _nothing_to_end,
    ) -> None:
        self.home = home
        self.end_lost = end_lost
        self.patience = conf.lost_after / 1000
        self.every = conf.beat_every / 1000
        self.monotonic = monotonic
        self.looked_at = monotonic()
        self.sightings: dict[str, _Sighting] = {}

    def look(self) -> int:
        """Look once at all held lanes; return how many were given back."""
        now = self.monotonic()
        # A watcher that was itself asleep has not watched: its sleep counts as one look.
        passed, self.looked_at = min(now - self.looked_at, self.every), now
        before, self.sightings = self.sightings, {}
        held = list(Lane.objects.filter(run_id__isnull=False))
        lost = [lane for lane in held if self._is_lost(lane, before.get(lane.name), passed)]
        return sum(self._give_back(lane.name, lane.run_id) for lane in lost if lane.run_id)

    def _give_back(self, lane: str, run_id: int) -> bool:
        # First what it left running: two runs in one workspace lose each other's work.
        self.end_lost(run_id)
        return queue.lose(lane, run_id)

    def _is_lost(self, lane: Lane, seen: _Sighting | None, passed: float) -> bool:
        if holders.is_gone(str(lane.holder), self.home):
            logger.warning(
                "holder gone lane=%s run=%s holder=%s", lane.name, lane.run_id, lane.holder
            )
            return True
        if seen is None or (seen.run_id, seen.beat) != (lane.run_id, lane.beat):
            seen = _Sighting(lane.run_id, lane.beat)
        else:
            seen.still += passed
        self.sightings[lane.name] = seen
        if seen.still < self.patience:
            return False
        logger.warning("holder still lane=%s run=%s holder=%s", lane.name, lane.run_id, lane.holder)
        return True


class Heart:
    """Beats for one holder from a thread and a connection of its own, and tells when it cannot."""

    def __init__(
        self,
        holder: Holder,
        conf: QueueConf,
        on_starved: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holder = holder
        self.every = conf.beat_every / 1000
        self.starved_after = conf.starved_after / 1000
        self.on_starved = on_starved
        self.monotonic = monotonic
        self.beaten_at = monotonic()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="heart", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self.thread.start()

    def stop(self) -> None:
        """Beat no more; what is still held will be seen as lost."""
        self.stopping.set()
        self.thread.join()

    def beat(self) -> None:
        """Beat once; after too long without success, tell the holder to end its own runs."""
        try:
            sql.quick_commits()
            queue.beat(self.holder)
            self.beaten_at = self.monotonic()
        except DatabaseError as error:
            logger.warning("cannot beat holder=%s error=%s", self.holder.name, error)
            connection.close()
            if self.monotonic() - self.beaten_at >= self.starved_after:
                self.on_starved()

    def _run(self) -> None:
        while not self.stopping.wait(self.every):
            self.beat()
        connection.close()


class Watchdog:
    """Ends a process whose event loop is stuck; its lanes are then given back by others."""

    def __init__(self, patience: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.patience = patience
        self.monotonic = monotonic
        self.fed_at = monotonic()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def feed(self) -> None:
        """Show that the loop turns."""
        self.fed_at = self.monotonic()

    def start(self) -> None:
        """Begin to watch."""
        self.feed()
        self.thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self.stopping.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.stopping.wait(self.patience / 10):
            if self.monotonic() - self.fed_at >= self.patience:
                logger.error("the event loop is stuck; ending this process")
                faulthandler.dump_traceback()
                os._exit(3)
