"""The queue processor: one event loop that claims while slots are free and ends every run it began.

Database work happens in threads, never on the loop. What a run does is the handler's business, which
the command that starts the processor passes in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from django.db import DatabaseError, connection, transaction

from queue_app import clock, events, holders, queue, wakeup
from queue_app.batches import Batching
from queue_app.connections import replaced_when_broken
from queue_app.events import NewEvent
from queue_app.holders import Holder
from queue_app.models import Job, Lane, Message, Run
from queue_app.progress import ProgressWriter, Report
from queue_app.pulse import Pulse
from queue_app.results import NoEndWritten, write_end, write_job_end
from queue_app.values import Claim, Outcome
from queue_app.watch import Heart, Watchdog, Watcher
from tinyoffice.conf import Conf

logger = logging.getLogger(__name__)
T = TypeVar("T")

POLL_BUSY = 0.5
POLL_IDLE = 5.0


class Handler(Protocol):
    """What the processor calls for each claim, and what it asks besides."""

    def batching(self, agent: str) -> Batching:
        """Return how the agent likes its mail; called in a thread."""

    async def handle(self, claim: Claim, report: Report) -> Outcome:
        """Work on the claim; raise RunFailed with the fault; when cancelled, leave no process behind."""

    async def do_job(self, job: Job) -> str:
        """Do a job to its end; return what went wrong, or nothing; cancelled, leave no process."""

    def end_lost(self, run_id: int) -> None:
        """End what a lost run left on this machine, before its messages move; called in a thread."""


class Processor:
    """Claims, runs, ends; drains when stopped."""

    def __init__(self, conf: Conf, handler: Handler) -> None:
        self.conf = conf.processor
        self.handler = handler
        self.holder = holders.become("processor", conf.home)
        self.watcher = Watcher(conf.home, conf.queue, end_lost=handler.end_lost)
        self.heart = Heart(self.holder, conf.queue, on_starved=self._starved)
        self.watchdog = Watchdog(self.conf.stuck_after / 1000)
        self.pulse = Pulse(self.holder)
        self.progress = ProgressWriter()
        self.threads = ThreadPoolExecutor(self.conf.slots + 3, thread_name_prefix="database")
        self.tasks: dict[str, asyncio.Task[None]] = {}  # by lane, until the end is written
        self.work: dict[int, asyncio.Task[Any]] = {}  # by run, while the handler works
        self.stopped: set[int] = set()  # runs a person stopped
        self.turns: dict[str, int] = {}  # when a lane was last served, so that none is passed over
        self.failure: NoEndWritten | None = None
        self.bell: wakeup.Bell | None = None
        self.in_doubt = False  # the database was away: what it says it did must be looked at
        self.woken, self.stopping = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Work until stopped, then drain; raise what made it impossible to go on."""
        self.loop = asyncio.get_running_loop()
        self._listen()
        self._start_threads()
        sides = (self._feed_watchdog(), self._watch(), self.progress.run())
        helpers = [asyncio.create_task(side) for side in sides]
        try:
            await self._in_thread(self._announce)
            while not self.stopping.is_set():
                self.woken.clear()
                await self._wait(await self._attempt())
            await self._drain()
        finally:
            for helper in helpers:
                helper.cancel()
            self._stop_listening()
            self._stop_threads()
        logger.info("processor ended holder=%s", self.holder.name)
        if self.failure:
            raise self.failure

    def stop(self) -> None:
        """Claim no more, drain and end; asked twice, once is enough."""
        self.stopping.set()
        self.woken.set()

    async def _attempt(self) -> float:
        """Tick, and return how long to wait; a database that is away for a moment ends nothing."""
        try:
            if self.in_doubt:
                await self._in_thread(self._give_up_unknown, set(self.tasks))
                self._listen()
                self.in_doubt = False
            await self.tick()
            return await self._in_thread(_poll)
        except DatabaseError as error:
            logger.warning("the database is away; trying again error=%s", error)
            self.in_doubt = True
            return POLL_BUSY

    async def tick(self) -> int:
        """Obey stops, then claim while slots are free; return how many runs began."""
        if self.work:
            for run_id in await self._in_thread(_stop_requests, list(self.work)):
                self._stop_run(run_id)
        claims = await self._in_thread(self._claim_ready, set(self.tasks))
        for claim in claims:
            self.tasks[claim.lane] = asyncio.create_task(self._work(claim))
        jobs = await self._in_thread(_claim_jobs, self.holder)
        for claim, job in jobs:
            self.tasks[claim.lane] = asyncio.create_task(self._work_on_job(claim, job))
        return len(claims) + len(jobs)

    async def _work(self, claim: Claim) -> None:
        """Run one claim to its end, whatever that is."""
        report = self.progress.reporter(claim)
        await self._to_the_end(claim, self.handler.handle(claim, report), write_end)

    async def _work_on_job(self, claim: Claim, job: Job) -> None:
        """Do one job to its end; a job has a lane and a run, and no messages."""
        await self._to_the_end(claim, self.handler.do_job(job), write_job_end)

    async def _to_the_end(
        self,
        claim: Claim,
        work: Coroutine[Any, Any, T],
        write: Callable[[Claim, asyncio.Task[T], bool], bool],
    ) -> None:
        """Let the handler work, then write the end; only the handler's part can be cancelled."""
        handling = asyncio.create_task(work)
        self.work[claim.run_id] = handling
        await asyncio.wait([handling])
        try:
            await self._in_thread(write, claim, handling, claim.run_id in self.stopped)
        except NoEndWritten as failure:
            self.failure = failure
            self.stop()
        finally:
            self.stopped.discard(claim.run_id)
            del self.work[claim.run_id]
            del self.tasks[claim.lane]
            self.woken.set()

    def _claim_ready(self, busy: set[str]) -> list[Claim]:
        claims: list[Claim] = []
        free = self.conf.slots - len(busy)
        lanes = [lane for lane in queue.ready_lanes() if lane not in busy] if free else []
        for lane in sorted(lanes, key=lambda lane: self.turns.get(lane, 0)):
            if len(claims) == free or self.stopping.is_set():
                break
            batching = self.handler.batching(lane.removeprefix("agent:"))
            if claim := queue.claim(lane, self.holder, batching):
                self.turns[lane] = claim.run_id
                claims.append(claim)
        return claims

    def _give_up_unknown(self, known: set[str]) -> None:
        """Give back lanes that a broken connection took for us without telling us."""
        held = Lane.objects.filter(holder=self.holder.name, run_id__isnull=False)
        for lane in held.exclude(name__in=known):
            logger.warning("giving back lane=%s run=%s", lane.name, lane.run_id)
            queue.give_back(Claim(lane=lane.name, run_id=lane.run_id or 0, started=clock.now()))

    async def _watch(self) -> None:
        while True:
            try:
                await self._in_thread(self.watcher.look)
            except DatabaseError as error:
                logger.warning("cannot watch over others error=%s", error)
            await asyncio.sleep(self.watcher.every / 2)

    async def _feed_watchdog(self) -> None:
        while True:
            self.watchdog.feed()
            await asyncio.sleep(self.watchdog.patience / 10)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.woken.wait(), seconds)
        except TimeoutError:
            return

    async def _drain(self) -> None:
        """Let what runs finish; give back what does not within the time."""
        logger.info("draining runs=%d", len(self.tasks))
        if self.tasks:
            await asyncio.wait(self.tasks.values(), timeout=self.conf.drain / 1000)
        self._cancel_all()
        if self.tasks:
            await asyncio.wait(self.tasks.values())

    def _stop_run(self, run_id: int) -> None:
        if run_id in self.work:  # or it has ended while its request was read
            self.stopped.add(run_id)
            _cancel_once(self.work[run_id])

    def _cancel_all(self) -> None:
        for handling in self.work.values():
            _cancel_once(handling)

    def _starved(self) -> None:
        """End our own runs: others will take their lanes, and two must never work at once."""
        logger.error("could not beat; ending own runs holder=%s", self.holder.name)
        self.loop.call_soon_threadsafe(self._cancel_all)

    async def _in_thread(self, act: Callable[..., T], *arguments: object) -> T:
        return await self.loop.run_in_executor(self.threads, replaced_when_broken, act, *arguments)

    def _listen(self) -> None:
        if self.bell is None:
            self.bell = wakeup.hang_up()
            self.bell_fd = self.bell.fileno()
            self.loop.add_reader(self.bell_fd, self._hear, self.bell)

    def _stop_listening(self) -> None:
        if self.bell is not None:
            self.loop.remove_reader(self.bell_fd)
            self.bell.close()
            self.bell = None

    def _hear(self, bell: wakeup.Bell) -> None:
        try:
            bell.wait(0)
        except DatabaseError as error:
            logger.warning("the bell is broken; hanging a new one error=%s", error)
            self._stop_listening()
            self.in_doubt = True
        self.woken.set()

    def _start_threads(self) -> None:
        for part in (self.heart, self.watchdog, self.pulse):
            part.start()

    def _stop_threads(self) -> None:
        for part in (self.heart, self.watchdog, self.pulse):
            part.stop()
        self.threads.shutdown()
        self.holder.release()

    def _announce(self) -> None:
        data = {"holder": self.holder.name, "pid": self.holder.pid}
        with transaction.atomic(), connection.cursor() as cursor:
            events.record(cursor, [NewEvent("processor_start", None, None, data)], now=clock.now())
        logger.info("processor started holder=%s slots=%d", self.holder.name, self.conf.slots)


def _cancel_once(handling: asyncio.Task[Any]) -> None:
    """Cancel a run that is not being cancelled: again would interrupt the end of its processes."""
    if not handling.cancelling():
        handling.cancel()


def _poll() -> float:
    """Return how long to wait without a wake-up: less while something waits for its time."""
    return POLL_BUSY if Message.objects.pending().exists() else POLL_IDLE


def _stop_requests(run_ids: list[int]) -> list[int]:
    runs = Run.objects.filter(pk__in=run_ids, stop_by__isnull=False)
    jobs = Job.objects.filter(run_id__in=run_ids, stop_by__isnull=False)
    return [*runs.values_list("pk", flat=True), *(job.run_id for job in jobs if job.run_id)]


def _claim_jobs(holder: Holder) -> list[tuple[Claim, Job]]:
    """Take the lane of each kind of job that waits; two of a kind never run at once."""
    taken: dict[str, tuple[Claim, Job]] = {}
    for job in Job.objects.filter(status="pending").order_by("id"):
        lane = f"job:{job.name}"
        if lane not in taken and (claim := queue.hold(lane, holder)):
            if queue.start_job(job.pk, claim):
                job.run_id = claim.run_id
                taken[lane] = (claim, job)
            else:
                queue.give_back(claim)
    return list(taken.values())
