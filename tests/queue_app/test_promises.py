"""The promises R1 to R4 and R6 of the queue, with real processes and real signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections

from queue_app import queue
from queue_app.holders import Holder
from queue_app.models import (
    AgentMessage,
    Conversation,
    Event,
    Intake,
    Lane,
    Message,
    Response,
    Run,
    RunMessage,
)
from queue_app.watch import Watcher
from tests import factories
from tests.processes import Child, children

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

DAY = 24 * 3_600_000


def traces_of(message_id: str) -> tuple[int, ...]:
    """Count the rows of each kind that an accepted fan-out to two agents leaves."""
    messages = Message.objects.filter(conversation_id=message_id)
    return (
        Intake.objects.filter(external_id=message_id).count(),
        Conversation.objects.filter(pk=message_id).count(),
        messages.count(),
        AgentMessage.objects.filter(conversation_id=message_id).count(),
        Event.objects.filter(conversation_id=message_id).count(),
    )


def test_r1_what_was_acknowledged_is_on_disk_wherever_the_intake_is_killed() -> None:
    counter = StatementCounter()
    with connection.execute_wrapper(counter):
        queue.enqueue(factories.submission(message_id="counted"))
    statements = counter.count + 5  # the fan-out has more; those past the end are acknowledged

    with Child("accept_and_die", statements) as child:
        told = [line.split() for line in child.lines()]

    whole, nothing = (1, 1, 2, 2, 2), (0, 0, 0, 0, 0)
    assert {tuple(words[1:]) for words in told[:3]} == {("-", "killed")}
    assert told[-1][1:] == [told[-1][0], "ended"]
    for message_id, acknowledged, _ in told:
        found = traces_of(message_id)
        assert found == whole if acknowledged != "-" else found in (whole, nothing), message_id


class StatementCounter:
    """Counts what is executed through a connection."""

    count = 0

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.count += 1
        return execute(*args)


def test_r2_fifty_senders_of_the_same_thing_make_one_intake_also_after_a_day(
    holder: Holder,
) -> None:
    with children(5, "send_the_same", "same_1", 10) as senders:
        for sender in senders:
            assert sender.line() == "ready"
        for sender in senders:
            sender.go()
        results = [word for sender in senders for word in sender.lines()[0].split()]

    assert sorted(results) == ["=same_1"] * 49 + ["same_1"]
    assert traces_of("same_1")[:3] == (1, 1, 1)

    claimed = queue.claim(queue.lane_of("coder"), holder)
    assert claimed is not None
    queue.complete(claimed, factories.answer(claimed))
    later = claimed.started + 2 * DAY
    queue.prune(settings.TINYOFFICE.retention, now=later)
    assert not Message.objects.exists()
    with pytest.raises(
        queue_errors().DuplicateMessage, match="accepted before, as message 'same_1'"
    ):
        queue.enqueue(factories.submission(message_id="same_1"), now=later)


def queue_errors():  # type: ignore[no-untyped-def]
    from queue_app import errors

    return errors


def test_r4_a_holder_that_stood_still_writes_nothing_when_it_wakes(holder: Holder) -> None:
    accepted = factories.enqueue("slow", now=1)
    with Child("hold_and_wait", "coder", "no") as sleeper:
        assert sleeper.line().startswith("claimed")
        sleeper.freeze()
        clock = Clock()
        watcher = Watcher(settings.TINYOFFICE.home, settings.TINYOFFICE.queue, clock)
        assert not watcher.look(), "its lock is held and it was seen only once"
        given_back = [clock.tick(watcher.every) or watcher.look() for _ in range(20)]
        assert sum(given_back) == 1

        again = queue.claim(queue.lane_of("coder"), holder)
        assert again is not None
        assert queue.complete(again, factories.answer(again, "by another"))
        before = everything()
        sleeper.thaw()
        sleeper.go()
        assert sleeper.line() == "refused"

    assert everything() == before
    assert Response.objects.get().message == "by another"
    assert factories.row(accepted.message_id).retry_count == 1


class Clock:
    """A monotonic clock that moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += seconds


def everything() -> list[list[tuple[object, ...]]]:
    tables = (Message, Response, AgentMessage, Conversation, Lane, Run, RunMessage, Event)
    return [list(table.objects.order_by("pk").values_list()) for table in tables]


def test_r4_no_fence_repeats_when_an_agent_is_deleted_and_made_again(holder: Holder) -> None:
    factories.enqueue("first")
    stale = factories.claim(holder)
    assert queue.lose(stale.lane, stale.run_id, now=factories.NOW)
    # What deleting and making an agent again could at worst do to its lane.
    Lane.objects.filter(name=stale.lane).update(beat=0, strikes=0, blocked_until=None)
    fresh = factories.claim(holder, now=factories.NOW + DAY)
    assert fresh.run_id != stale.run_id

    before = everything()
    assert not queue.complete(stale, factories.answer(stale, "too late"))
    assert not queue.give_back(stale)

    assert everything() == before


def test_r6_a_message_that_kills_its_processor_dies_alone() -> None:
    for text in ("one", "two", "poison", "four", "five"):
        factories.enqueue(text, now=1)
    watcher = Watcher(settings.TINYOFFICE.home, settings.TINYOFFICE.queue)

    deaths = 0
    while Message.objects.pending().exists():
        connections.close_all()
        with Child("die_of_poison", "coder") as processor:
            died = processor.process.wait(60) != 0
        deaths += died
        assert watcher.look() == died, "the lock of a dead holder is free: it is seen at once"
        assert deaths < 10

    states = dict(Message.objects.values_list("message", "status"))
    assert states == {
        "one": "completed",
        "two": "completed",
        "poison": "dead",
        "four": "completed",
        "five": "completed",
    }
    assert deaths == settings.TINYOFFICE.queue.max_attempts
    assert Run.objects.count() == 9
    notices = Response.objects.filter(message__contains="could not answer")
    assert [notice.original_message for notice in notices] == ["poison"]


def test_a_restart_finds_what_was_running_within_milliseconds() -> None:
    accepted = factories.enqueue("interrupted", now=1)
    with Child("hold_and_wait", "coder", "no") as processor:
        assert processor.line().startswith("claimed")
        processor.kill()

    with Child("process_queue") as restarted:
        restarted.wait_until(lambda: Run.objects.filter(outcome="lost").exists())
        restarted.wait_until(lambda: factories.row(accepted.message_id).status == "dead")

    lost, again = Run.objects.order_by("id")
    assert (lost.outcome, lost.error_class) == ("lost", "lost")
    assert again.error_class == "refused", "there is no such agent in this office"
