from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from queue_app import queue
from queue_app.batches import Batching
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import AgentMessage, Conversation, Event, Lane, Message, Response, Run
from queue_app.values import Claim, Usage
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "agent:coder"
MINUTE, HOUR = 60_000, 3_600_000
KEY = "sk-abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Expected:
    """What one failure of a first attempt, alone, leads to; the wait in seconds, before jitter."""

    error_class: ErrorClass
    status: str
    retry_count: int
    wait: int
    strikes: int
    events: tuple[str, ...]


FAILED, DEAD = ("message_failed",), ("response_ready", "message_dead")
BLOCKED = ("message_failed", "lane_blocked")

TABLE = [
    Expected(ErrorClass.AUTH, "pending", 0, 60, 1, BLOCKED),
    Expected(ErrorClass.MISSING, "pending", 0, 60, 1, BLOCKED),
    Expected(ErrorClass.LIMIT, "pending", 0, 60, 1, BLOCKED),
    Expected(ErrorClass.BUDGET, "pending", 0, 60, 1, BLOCKED),
    Expected(ErrorClass.ENDPOINT, "pending", 0, 60, 1, BLOCKED),
    Expected(ErrorClass.CONTEXT, "pending", 1, 0, 0, FAILED),
    Expected(ErrorClass.SESSION, "pending", 1, 0, 0, FAILED),
    Expected(ErrorClass.LOST, "pending", 1, 0, 0, FAILED),
    Expected(ErrorClass.TIMEOUT, "pending", 1, 1, 0, FAILED),
    Expected(ErrorClass.CRASH, "pending", 1, 1, 0, FAILED),
    Expected(ErrorClass.OUTPUT, "pending", 1, 1, 0, FAILED),
    Expected(ErrorClass.REFUSED, "dead", 1, 0, 0, DEAD),
]


def fail(holder: Holder, error_class: ErrorClass, at: int, **fields: Any) -> Claim:
    claimed = factories.claim(holder, now=at)
    assert queue.fail(claimed, factories.fault(error_class, **fields), now=at)
    return claimed


def free_at() -> int:
    return Lane.objects.get(name=LANE).blocked_until or NOW


@pytest.mark.parametrize("expected", TABLE, ids=lambda row: row.error_class)
def test_a_failure_is_paid_for_by_whose_fault_it_is(expected: Expected, holder: Holder) -> None:
    accepted = factories.enqueue()
    claimed = factories.claim(holder)
    so_far = len(factories.events())
    fault = factories.fault(expected.error_class, partial="I was about", exit_code=3)

    assert queue.fail(claimed, fault, Usage(cost=0.5, model="m"), now=NOW + 7)

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count) == (expected.status, expected.retry_count)
    assert (row.last_error, row.error_class) == ("It broke.", expected.error_class)
    assert (row.run_id, row.claimed_by, row.updated_at) == (None, None, NOW + 7)
    assert row.available_at == NOW
    lane = Lane.objects.get()
    assert (lane.run_id, lane.holder, lane.completed) == (None, None, 0)
    assert lane.strikes == expected.strikes
    assert_blocked_for(lane, expected)
    run = Run.objects.get()
    assert (run.outcome, run.finished, run.run_ms) == ("failed", NOW + 7, 7)
    assert (run.error_class, run.error) == (expected.error_class, "It broke.")
    assert (run.partial, run.exit_code) == ("I was about", 3)
    assert (run.cost, run.model) == (0.5, "m")
    assert tuple(factories.events()[so_far:]) == expected.events
    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.open) == (1, int(expected.status == "pending"))
    assert Response.objects.count() == int(expected.status == "dead")
    assert AgentMessage.objects.count() == 1


def assert_blocked_for(lane: Lane, expected: Expected) -> None:
    if not expected.wait:
        assert (lane.blocked_until, lane.blocked_reason) == (None, None)
        return
    waits = (lane.blocked_until or 0) - (NOW + 7)
    spread = 0 if expected.strikes else expected.wait * 200
    assert abs(waits - expected.wait * 1000) <= spread
    assert lane.blocked_reason == f"{expected.error_class}: It broke."


def test_the_table_above_holds_every_fault_of_a_run() -> None:
    by_people = {ErrorClass.STOPPED, ErrorClass.CANCELLED, ErrorClass.EXPIRED}

    assert {row.error_class for row in TABLE} == set(ErrorClass) - by_people


def test_a_message_that_always_crashes_is_dead_at_the_fifth_attempt(holder: Holder) -> None:
    accepted = factories.enqueue("please")
    at, waits = NOW, []

    for attempt in range(1, 6):
        assert Response.objects.count() == 0
        fail(holder, ErrorClass.CRASH, at, text=f"Crash {attempt}.")
        waits.append(free_at() - at)
        at = free_at()

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count, row.last_error) == ("dead", 5, "Crash 5.")
    for wait, middle in zip(waits[:4], (1_000, 5_000, 30_000, 120_000), strict=True):
        assert 0.8 * middle <= wait <= 1.2 * middle
    assert Lane.objects.get().blocked_until is None
    assert list(Run.objects.order_by("id").values_list("attempt", flat=True)) == [1, 2, 3, 4, 5]
    assert factories.events().count("message_failed") == 4
    assert factories.events().count("message_dead") == 1


def test_the_sender_hears_of_it_once_when_the_message_is_dead(holder: Holder) -> None:
    accepted = factories.enqueue("a  b\n" + "c" * 200, channel="telegram", thread="7")

    fail(holder, ErrorClass.REFUSED, NOW, text="The provider refused.")

    response = Response.objects.get()
    assert (response.channel, response.sender, response.sender_id, response.thread) == (
        "telegram",
        "Alice",
        "alice",
        "7",
    )
    assert (response.status, response.agent) == ("pending", "coder")
    assert (response.message_id, response.conversation_id) == (accepted.message_id,) * 2
    assert response.message == (
        "@coder could not answer “a b " + "c" * 115 + "…”: The provider refused. "
        "It is kept under Dead letters, where it can be retried or discarded."
    )


def test_a_timeout_is_tried_twice(holder: Holder) -> None:
    accepted = factories.enqueue()

    fail(holder, ErrorClass.TIMEOUT, NOW)
    assert factories.row(accepted.message_id).status == "pending"
    fail(holder, ErrorClass.TIMEOUT, free_at())

    assert factories.row(accepted.message_id).status == "dead"


def test_an_agent_that_cannot_log_in_blocks_longer_each_time_and_the_owner_is_told_once(
    holder: Holder,
) -> None:
    accepted = factories.enqueue()
    at, waits = NOW, []

    for _ in range(8):
        fail(holder, ErrorClass.AUTH, at)
        waits.append(free_at() - at)
        at = free_at()

    assert waits == [n * MINUTE for n in (1, 2, 4, 8, 16, 32, 60, 60)]
    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count) == ("pending", 0)
    assert factories.events().count("lane_blocked") == 1
    assert json.loads(Event.objects.get(type="lane_blocked").data) == {
        "lane": LANE,
        "until": NOW + MINUTE,
        "errorClass": "auth",
        "error": "It broke.",
    }
    assert not Response.objects.exists()


def test_a_limit_blocks_until_the_provider_says_it_ends(holder: Holder) -> None:
    factories.enqueue()

    fail(holder, ErrorClass.LIMIT, NOW, reset_at=NOW + 5 * HOUR)

    assert free_at() == NOW + 5 * HOUR


def test_a_completed_run_forgets_the_agents_strikes(holder: Holder) -> None:
    factories.enqueue()
    fail(holder, ErrorClass.AUTH, NOW)
    claimed = factories.claim(holder, now=free_at())
    queue.complete(claimed, factories.answer(claimed), now=NOW + HOUR)
    factories.enqueue()

    fail(holder, ErrorClass.AUTH, NOW + HOUR)

    assert free_at() == NOW + HOUR + MINUTE
    assert factories.events().count("lane_blocked") == 2


def test_order_is_kept_after_failures(holder: Holder) -> None:
    for text in "abc":
        factories.enqueue(text)
    fail(holder, ErrorClass.CRASH, NOW)
    factories.enqueue("d", now=NOW + 1)
    done: list[str] = []
    at = free_at()

    while claimed := queue.claim(LANE, holder, now=at):
        done += [row.message for row in claimed.messages]
        queue.complete(claimed, factories.answer(claimed), now=at)

    assert done == ["a", "b", "c", "d"]


def test_nobody_overtakes_a_message_that_waits_for_its_next_attempt(holder: Holder) -> None:
    factories.enqueue("a")
    fail(holder, ErrorClass.CRASH, NOW)
    factories.enqueue("b")

    assert queue.claim(LANE, holder, now=NOW) is None
    claimed = factories.claim(holder, now=free_at())
    assert [row.message for row in claimed.messages] == ["a"]


def test_a_poison_message_in_a_batch_of_five_dies_alone(holder: Holder) -> None:
    accepted = [factories.enqueue(text).message_id for text in ("1", "2", "poison", "4", "5")]
    at = NOW

    while claimed := queue.claim(LANE, holder, Batching.TOGETHER, now=at):
        if any(row.message == "poison" for row in claimed.messages):
            queue.fail(claimed, factories.fault(), now=at)
        else:
            queue.complete(claimed, factories.answer(claimed), now=at)
        at = max(at, Lane.objects.get().blocked_until or 0)

    statuses = [factories.row(message_id).status for message_id in accepted]
    assert statuses == ["completed", "completed", "dead", "completed", "completed"]
    assert Run.objects.count() == 9
    assert Run.objects.filter(outcome="failed").count() == 5
    assert Lane.objects.get().completed == 4
    notices = [row for row in Response.objects.all() if "could not answer" in row.message]
    assert [row.message_id for row in notices] == [accepted[2]]
    assert set(Conversation.objects.values_list("open", flat=True)) == {0}


def test_a_batch_is_charged_as_often_as_its_most_tried_message(holder: Holder) -> None:
    for text in "ab":
        factories.enqueue(text)

    fail(holder, ErrorClass.REFUSED, NOW)

    assert list(Message.objects.values_list("status", "retry_count")) == [("pending", 1)] * 2
    assert factories.events().count("message_failed") == 2
    assert not Response.objects.exists()


def test_losses_are_tried_at_once_then_later_then_dead(holder: Holder) -> None:
    accepted = factories.enqueue()
    at, waits = NOW, []

    for _ in range(5):
        claimed = factories.claim(holder, now=at)
        assert queue.lose(LANE, claimed.run_id, now=at)
        waits.append(free_at() - at if Lane.objects.get().blocked_until else 0)
        at = max(at, free_at())

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count, row.error_class) == ("dead", 5, "lost")
    assert row.last_error == "The processor that ran it died or stood still."
    assert waits[0] == waits[4] == 0
    assert all(wait > 0 for wait in waits[1:4])
    assert set(Run.objects.values_list("outcome", flat=True)) == {"lost"}
    assert Response.objects.count() == 1


def test_what_is_given_back_is_not_charged_and_keeps_its_place(holder: Holder) -> None:
    accepted = factories.enqueue("a")
    factories.enqueue("b", person="bob", now=NOW + 1)
    claimed = factories.claim(holder, now=NOW + 5)
    so_far = factories.events()

    assert queue.give_back(claimed, now=NOW + 9)

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count, row.last_error, row.error_class) == (
        "pending",
        0,
        None,
        None,
    )
    run = Run.objects.get()
    assert (run.outcome, run.error_class, run.error, run.run_ms) == ("given_back", None, None, 4)
    assert factories.events() == so_far
    assert Lane.objects.get().blocked_until is None
    assert factories.claim(holder, now=NOW + 9).primary.message == "a"


def test_giving_back_keeps_what_an_earlier_attempt_ended_with(holder: Holder) -> None:
    accepted = factories.enqueue()
    fail(holder, ErrorClass.CRASH, NOW)
    claimed = factories.claim(holder, now=free_at())

    queue.give_back(claimed, now=NOW + HOUR)

    row = factories.row(accepted.message_id)
    assert (row.retry_count, row.last_error, row.error_class) == (1, "It broke.", "crash")


@pytest.mark.parametrize("end", ["fail", "lose", "give_back", "end_stopped"])
def test_an_end_after_the_claim_was_lost_writes_nothing(end: str, holder: Holder) -> None:
    factories.enqueue()
    lost = factories.claim(holder)
    queue.lose(LANE, lost.run_id, now=NOW)
    factories.claim(holder, now=NOW)
    before = factories.tables()

    ends = {
        "fail": lambda: queue.fail(lost, factories.fault(), now=NOW),
        "lose": lambda: queue.lose(LANE, lost.run_id, now=NOW),
        "give_back": lambda: queue.give_back(lost, now=NOW),
        "end_stopped": lambda: queue.end_stopped(lost, now=NOW),
    }
    assert ends[end]() is False

    assert factories.tables() == before


def test_secrets_in_what_a_program_wrote_are_masked_everywhere(holder: Holder) -> None:
    factories.enqueue()

    fail(holder, ErrorClass.REFUSED, NOW, text=f"bad key {KEY}", partial=f"key\n{KEY}")
    factories.enqueue()
    fail(holder, ErrorClass.AUTH, NOW, text=f"bad key {KEY}")

    assert KEY not in repr(factories.tables())
    assert Run.objects.earliest("id").partial == "key\nsk-a•••"
    assert Lane.objects.get().blocked_reason == "auth: bad key sk-a•••"


def test_what_a_failed_attempt_cost_is_counted_in_its_conversation(holder: Holder) -> None:
    factories.enqueue()
    for _ in range(5):
        claimed = factories.claim(holder, now=free_at())
        queue.fail(claimed, factories.fault(), Usage(cost=0.25), now=free_at())

    assert sum(Run.objects.values_list("cost", flat=True)) == 1.25
    assert Conversation.objects.get().cost == 1.25
