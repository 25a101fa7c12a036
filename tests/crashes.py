"""R5: a whole scenario, ended hard at one numbered step, settled by a fresh processor, and judged.

Numbered are every statement that writes and both sides of every start of a run's process. A warm
process forks one process per number to crash and one to settle. With a single slot the steps come
in the same order each time, or nearly: whoever reads the results sees where each crash was.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from agents_app import rooms
from agents_app.handler import OfficeHandler
from agents_app.marks import mark_of
from agents_app.rooms import RoomMessage
from agents_app.shepherds import Nursery, Shepherd
from channels_app import reach
from queue_app import queue
from queue_app.errors import DuplicateMessage, UnknownRun
from queue_app.models import ChatMessage, Conversation, Event, Lane, Message, Response, Run
from queue_app.processor import Processor
from queue_app.queue import rooms as room_posts
from queue_app.shepherd import trees
from tests.agents_app import office
from tests.processes import living_in

# How a process of the scenario ends.
OVER, CRASHED = 0, 77
_WRITES = ("INSERT", "UPDATE", "DELETE")
# Written when the clock says so, not by the scenario.
_BY_THE_CLOCK = ('"processes"', "SET beat = beat")
_PATIENCE = 20.0
_NAME_LENGTH = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """Where the scenario was ended, and what the world looked like when it had settled."""

    at: str  # empty when it came to its own end
    settled: bool
    world: dict[str, list[list[str]]]
    wrong: list[str]


class Steps:
    """Counts what the scenario does, from any thread; ends the process before one step."""

    def __init__(self, last: int, tell: int) -> None:
        self.last = last
        self.tell = tell
        self.count = 0
        self.lock = threading.Lock()

    def step(self, what: str) -> None:
        """Count one more; at the last one say what it would have been, and end."""
        with self.lock:
            self.count += 1
            if self.count == self.last:
                os.write(self.tell, " ".join(what.split()).encode()[:100])
                os._exit(CRASHED)

    def watch(self) -> None:
        """Count the writes of every connection that is opened from now on."""
        connection_created.connect(self._opened, weak=False)

    def _opened(self, connection: BaseDatabaseWrapper, **_: Any) -> None:
        connection.execute_wrappers.append(self._execute)

    def _execute(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.lstrip().startswith(_WRITES) and not any(word in sql for word in _BY_THE_CLOCK):
            self.step(sql)
        return execute(sql, *rest)


class CountedNursery(Nursery):
    """Counts both sides of a start: not yet ordered, and ordered with nobody to hear of it."""

    def __init__(self, steps: Steps, nursery: Nursery) -> None:
        super().__init__(*nursery.modules)
        self.steps = steps

    async def start(self, mark: str) -> Shepherd:
        """Have a shepherd forked between two steps."""
        self.steps.step("before a start")
        shepherd = await super().start(mark)
        self.steps.step("after a start")
        return shepherd


def crash_everywhere() -> Iterator[Crash]:
    """End the scenario at its first step, its second, and so on until it is not reached any more."""
    room_posts.READ_AFTER = 0
    _set_the_stage()
    number, at = 0, "somewhere"
    while at:
        number += 1
        _clear()
        _, at = _in_a_fork(number)
        code, _ = _in_a_fork(0)
        yield Crash(at=at, settled=code == OVER, world=_world(), wrong=_contradictions())


def _in_a_fork(last: int) -> tuple[int, str]:
    connections.close_all()
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        steps = Steps(last, writer)
        steps.watch()
        asyncio.run(asyncio.wait_for(_play(steps), _PATIENCE))
        os._exit(OVER)
    os.close(writer)
    # The nursery is a program of its own, so only the fork itself holds the other end.
    at = os.read(reader, 1000).decode()
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), at


def _clear() -> None:
    for model in apps.get_app_config("queue_app").get_models():
        if not model._meta.proxy:
            model.objects.all().delete()


def _set_the_stage() -> None:
    """Hire one who hands on, one who posts, one who fails first, one who refuses, one who is stuck."""
    office.hire("lead", answer="I will. [@mate: build it]")
    office.hire("mate", answer="Built.")
    office.team_up("crew", "lead", "mate")
    office.hire("ann", answer="Told. [#hall: it is done]")
    office.hire("bob", answer="Fine.")
    office.team_up("hall", "ann", "bob")
    office.hire("cat", answer="Purr.")
    office.team_up("den", "cat")
    office.hire("flaky", crash=True, until_attempt=1, answer="At last.")
    office.hire("rude", fail="refused", message="No.")
    office.hire("stuck", silence=True)


async def _play(steps: Steps) -> None:
    """Send what the scenario sends, process it, and stop what is stuck, until nothing is left to do."""
    handler = OfficeHandler(settings.TINYOFFICE, reach.of_message)
    handler.nursery = CountedNursery(steps, handler.nursery)
    processor = Processor(settings.TINYOFFICE, handler)
    await asyncio.to_thread(_send_all)
    running = asyncio.create_task(processor.run())
    while not await asyncio.to_thread(_is_over):
        await asyncio.to_thread(_stop_the_stuck)
        await asyncio.sleep(0.005)
        processor.woken.set()  # what failed is due again in milliseconds, sooner than a poll
    processor.stop()
    await running
    handler.nursery.close()


def _send_all() -> None:
    """Send as a client does that repeats what was not acknowledged."""
    sends: list[Callable[[], object]] = [
        lambda: office.send("[@flaky: one] [@rude: two]", message_id="api_fan_out"),
        lambda: office.send("@crew make it", message_id="api_hand_off"),
        lambda: office.send("@ann tell them", message_id="api_post"),
        lambda: office.send("@stuck wait", message_id="api_stuck"),
        lambda: rooms.post(
            RoomMessage(
                team="den",
                text="hi",
                sender="Alice",
                person="owner",
                source="api",
                external_id="in_a_room",
            )
        ),
    ]
    for send in sends:
        try:
            send()
        except DuplicateMessage:
            continue


def _stop_the_stuck() -> None:
    stuck = Run.objects.filter(agent="stuck", finished__isnull=True, stop_by__isnull=True)
    for run_id in stuck.values_list("pk", flat=True):
        try:
            queue.request_stop(run_id, "Alice")
        except UnknownRun:
            continue


def _is_over() -> bool:
    return office.settled() and not Run.objects.filter(finished__isnull=True).exists()


def _world() -> dict[str, list[list[str]]]:
    """Return all that people and agents see, without what differs by times and attempts."""
    messages = Message.objects.values_list("agent", "from_agent", "message", "status")
    responses = Response.objects.values_list("agent", "message")
    posts = ChatMessage.objects.values_list("from_agent", "message")
    return {
        "messages": sorted([str(word) for word in row] for row in messages),
        "responses": sorted([str(word) for word in row] for row in responses),
        "posts": sorted([str(word) for word in row] for row in posts),
    }


def _contradictions() -> list[str]:
    """Return where rows, events and processes do not tell the same story."""
    told = Counter(Event.objects.values_list("type", flat=True))
    rows = {
        "message_enqueued": Message.objects.count(),
        "response_ready": Response.objects.count(),
        "chain_step_start": Run.objects.count(),
        "chain_step_done": Run.objects.filter(outcome="completed").count(),
        "chain_handoff": Message.objects.filter(from_agent="lead").count(),
        "message_dead": Message.objects.filter(status="dead").count(),
        "room_post": ChatMessage.objects.count(),
    }
    wrong = [
        f"{told[name]} {name}, {count} rows" for name, count in rows.items() if told[name] != count
    ]
    wrong += [f"{one.pk} has {one.open} open" for one in Conversation.objects.exclude(open=0)]
    wrong += [f"{lane} is held" for lane in Lane.objects.filter(run_id__isnull=False)]
    answers = Counter(Response.objects.values_list("message_id", flat=True))
    for one in Message.objects.exclude(channel="chatroom"):
        if answers[one.message_id] != 1:
            wrong.append(f"{one.message_id} has {answers[one.message_id]} answers")
    return wrong + [f"process {pid} is left" for pid in _left()]


def _left() -> set[int]:
    """Return who is left of any run; what was never given an order ends by itself in a moment."""
    deadline = time.monotonic() + 2.0
    while (found := _processes()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _processes() -> set[int]:
    names = {mark_of(pk)[:_NAME_LENGTH] for pk in Run.objects.values_list("pk", flat=True)}
    return living_in(Path(settings.TINYOFFICE.workspace)) | set(_wearing(names))


def _wearing(names: set[str]) -> Iterator[int]:
    for file in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = file.read_text().strip()
        except OSError:
            continue  # ended meanwhile
        pid = int(file.parent.name)
        if name in names and trees.since(pid):
            yield pid
