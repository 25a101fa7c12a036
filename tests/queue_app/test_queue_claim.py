from __future__ import annotations

import json
from typing import Any

import pytest

from queue_app import holders, queue
from queue_app.batches import Batching
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import Event, Lane, Message, Run, RunMessage
from queue_app.values import Claim
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "agent:coder"
LATER = NOW + 60_000


def texts(claimed: Claim | None) -> list[str]:
    return [row.message for row in claimed.messages] if claimed else []


def fail_once(holder: Holder, **fields: Any) -> None:
    """Let the next run fail by the message's fault, and its lane be free again a minute later."""
    claimed = factories.claim(holder, **fields)
    assert queue.fail(claimed, factories.fault(), now=NOW)


def test_the_line_is_taken_by_the_time_it_is_available_then_by_arrival(holder: Holder) -> None:
    factories.enqueue("third", available_at=NOW + 20)
    factories.enqueue("first", available_at=NOW + 10)
    factories.enqueue("second", available_at=NOW + 10)

    claimed = factories.claim(holder, now=LATER)

    assert texts(claimed) == ["first", "second", "third"]
    assert claimed.primary.message == "first"


def test_a_message_of_the_future_is_not_taken_and_holds_nobody_up(holder: Holder) -> None:
    factories.enqueue("tomorrow", available_at=NOW + 1)
    assert queue.claim(LANE, holder, now=NOW) is None
    factories.enqueue("now")

    claimed = factories.claim(holder, now=NOW)

    assert texts(claimed) == ["now"]
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    assert texts(queue.claim(LANE, holder, now=NOW + 1)) == ["tomorrow"]


def test_a_lane_is_held_by_one_run_at_a_time(holder: Holder) -> None:
    factories.enqueue("first", person="alice")
    factories.enqueue("second", person="bob")
    first = factories.claim(holder)

    assert queue.claim(LANE, holder, now=NOW) is None
    assert Run.objects.count() == 1
    queue.complete(first, factories.answer(first), now=NOW)
    assert texts(queue.claim(LANE, holder, now=NOW)) == ["second"]


def test_agents_run_beside_each_other(holder: Holder) -> None:
    factories.enqueue("a", "coder")
    factories.enqueue("b", "writer")

    assert texts(queue.claim("agent:coder", holder, now=NOW)) == ["a"]
    assert texts(queue.claim("agent:writer", holder, now=NOW)) == ["b"]


def test_a_claim_writes_the_run_the_lane_the_rows_and_the_events(holder: Holder) -> None:
    accepted = [factories.enqueue(text, channel="telegram").message_id for text in "ab"]

    claimed = factories.claim(holder, now=NOW + 250)

    run = Run.objects.get()
    assert (run.pk, run.lane, run.agent, run.host) == (claimed.run_id, LANE, "coder", holder.host)
    assert (run.attempt, run.started, run.wait_ms) == (1, NOW + 250, 250)
    assert (run.finished, run.outcome, run.stop_by) == (None, None, None)
    lane = Lane.objects.get()
    assert (lane.run_id, lane.holder, lane.beat) == (run.pk, holder.name, 1)
    for row in Message.objects.all():
        assert (row.status, row.run_id, row.claimed_by) == ("processing", run.pk, "coder")
        assert row.updated_at == NOW + 250
    given = RunMessage.objects.order_by("id").values_list("run_id", "message_id", "hop")
    assert list(given) == [(run.pk, message_id, 0) for message_id in accepted]
    assert factories.events()[2:] == [
        "message_received",
        "agent_routed",
        "message_received",
        "agent_routed",
        "chain_step_start",
    ]
    assert json.loads(Event.objects.latest("id").data) == {
        "messageId": accepted[0],
        "runId": run.pk,
        "fromAgent": None,
        "attempt": 1,
        "messages": 2,
    }


def test_a_claim_of_an_empty_line_leaves_no_trace(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    before = factories.tables()

    assert queue.claim(LANE, holder, now=NOW) is None
    assert queue.claim("agent:nobody", holder, now=NOW) is None
    assert queue.claim("coder", holder, now=NOW) is None
    assert queue.claim("", holder, now=NOW) is None
    assert factories.tables() == before


def test_a_clock_that_went_back_gives_no_negative_wait(holder: Holder) -> None:
    factories.enqueue(available_at=NOW - 1_000)

    factories.claim(holder, now=NOW - 500)

    assert Run.objects.get().wait_ms == 0


def test_a_later_attempt_says_so(holder: Holder) -> None:
    factories.enqueue()
    fail_once(holder)

    claimed = factories.claim(holder, now=LATER)

    assert claimed.primary.retry_count == 1
    run = Run.objects.get(pk=claimed.run_id)
    assert (run.attempt, run.wait_ms) == (2, LATER - NOW)
    assert json.loads(Event.objects.latest("id").data)["attempt"] == 2


def test_a_paused_agent_starts_nothing_but_keeps_what_runs(holder: Holder) -> None:
    factories.enqueue("running", person="alice")
    claimed = factories.claim(holder)

    assert queue.pause("coder", "owner", now=NOW)
    factories.enqueue("waiting")
    assert queue.complete(claimed, factories.answer(claimed), now=NOW)

    assert queue.ready_lanes(now=LATER) == []
    assert queue.claim(LANE, holder, now=LATER) is None
    assert queue.resume("coder", "owner", now=NOW)
    assert queue.ready_lanes(now=NOW) == [LANE]
    assert texts(queue.claim(LANE, holder, now=NOW)) == ["waiting"]


def test_pausing_and_resuming_twice_changes_nothing(holder: Holder) -> None:
    assert not queue.resume("coder", "owner", now=NOW)
    assert queue.pause("coder", "owner", now=NOW)
    assert not queue.pause("coder", "owner", now=NOW)
    assert queue.resume("coder", "owner", now=NOW)

    assert factories.events() == ["lane_paused", "lane_unblocked"]
    assert [row["action"] for row in factories.tables()["audit"]] == ["pause", "resume"]


def test_a_blocked_lane_is_taken_when_its_time_has_come_and_not_before(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    queue.fail(claimed, factories.fault(ErrorClass.AUTH), now=NOW)
    until = Lane.objects.get().blocked_until
    assert until == NOW + 60_000

    assert queue.ready_lanes(now=until - 1) == []
    assert queue.claim(LANE, holder, now=until - 1) is None
    assert queue.ready_lanes(now=until) == [LANE]
    assert queue.claim(LANE, holder, now=until) is not None


def test_an_unblocked_lane_is_taken_at_once(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    queue.fail(claimed, factories.fault(ErrorClass.AUTH), now=NOW)

    assert queue.unblock(LANE, now=NOW)
    assert not queue.unblock(LANE, now=NOW)

    lane = Lane.objects.get()
    assert (lane.blocked_until, lane.blocked_reason, lane.strikes) == (None, None, 0)
    assert factories.events()[-1] == "lane_unblocked"
    assert queue.claim(LANE, holder, now=NOW) is not None


def test_the_ready_lanes_are_exactly_those_a_claim_finds_work_in(holder: Holder) -> None:
    factories.enqueue("x", "ready")
    factories.enqueue("x", "also-ready")
    factories.enqueue("x", "future", available_at=LATER + 1)
    factories.enqueue("x", "paused")
    queue.pause("paused", "owner", now=NOW)
    factories.enqueue("x", "blocked")
    queue.fail(factories.claim(holder, "blocked"), factories.fault(ErrorClass.LIMIT), now=LATER)
    factories.enqueue("x", "held")
    factories.claim(holder, "held")
    factories.enqueue("x", "held", person="bob")
    factories.enqueue("x", "done")
    done = factories.claim(holder, "done")
    queue.complete(done, factories.answer(done), now=NOW)
    queue.hold("channel:telegram", holder, now=NOW)

    ready = queue.ready_lanes(now=LATER)

    assert ready == ["agent:also-ready", "agent:ready"]
    lanes = Lane.objects.order_by("name").values_list("name", flat=True)
    assert [name for name in lanes if queue.claim(name, holder, now=LATER)] == ready
    assert queue.ready_lanes(now=LATER) == []


@pytest.mark.parametrize(
    ("batching", "runs"),
    [
        (Batching.TOGETHER, [["a", "b", "c"], ["d"]]),
        (Batching.BY_SENDER, [["a"], ["b", "c"], ["d"]]),
        (Batching.ONE, [["a"], ["b"], ["c"], ["d"]]),
    ],
)
def test_an_agent_is_given_its_mail_as_it_likes(
    batching: Batching, runs: list[list[str]], holder: Holder
) -> None:
    factories.enqueue("a", channel="telegram")
    factories.enqueue("b", channel="discord")
    factories.enqueue("c", channel="discord")
    factories.enqueue("d", channel="discord", person="bob", sender_id="bob")

    given = []
    while claimed := queue.claim(LANE, holder, batching, now=NOW):
        given.append(texts(claimed))
        queue.complete(claimed, factories.answer(claimed), now=NOW)

    assert given == runs


def test_one_at_a_time_still_takes_neighbouring_room_posts_together(holder: Holder) -> None:
    for text, channel in [("a", "api"), ("p", "chatroom"), ("q", "chatroom"), ("b", "api")]:
        factories.enqueue(text, channel=channel)

    given = []
    while claimed := queue.claim(LANE, holder, Batching.ONE, now=NOW):
        given.append(texts(claimed))
        queue.complete(claimed, factories.answer(claimed), now=NOW)

    assert given == [["a"], ["p", "q"], ["b"]]


def test_people_and_the_clock_are_never_merged(holder: Holder) -> None:
    factories.enqueue("a", person="owner")
    factories.enqueue("b", person="heartbeat", channel="heartbeat")
    factories.enqueue("c", person="owner")

    assert texts(queue.claim(LANE, holder, now=NOW)) == ["a"]


def test_what_failed_before_runs_alone_and_in_its_place(holder: Holder) -> None:
    factories.enqueue("a")
    factories.enqueue("b")
    fail_once(holder)
    factories.enqueue("c")

    assert [texts(queue.claim(LANE, holder, now=LATER))] == [["a"]]


def test_a_run_takes_fifty_messages_at_most(holder: Holder) -> None:
    queue.enqueue_all([factories.submission(f"{n}") for n in range(51)], now=NOW)

    claimed = factories.claim(holder)

    assert texts(claimed) == [f"{n}" for n in range(50)]
    assert Message.objects.processing().count() == 50


def test_a_run_takes_two_hundred_kilobytes_at_most(holder: Holder) -> None:
    for letter in "abc":
        factories.enqueue(letter * 100_000)

    assert [text[0] for text in texts(queue.claim(LANE, holder, now=NOW))] == ["a", "b"]


def test_a_lane_without_messages_is_held_by_one_at_a_time(holder: Holder) -> None:
    held = queue.hold("job:archive", holder, now=NOW)

    assert held is not None
    assert held.messages == ()
    assert queue.hold("job:archive", holder, now=NOW) is None
    run = Run.objects.get()
    assert (run.lane, run.agent, run.attempt, run.wait_ms) == ("job:archive", None, 1, None)
    assert queue.give_back(held, now=NOW + 5)
    run.refresh_from_db()
    assert (run.outcome, run.run_ms) == ("given_back", 5)
    again = queue.hold("job:archive", holder, now=NOW)
    assert again is not None
    assert again.run_id > held.run_id


def test_a_beat_counts_up_all_lanes_of_its_holder_and_no_others(holder: Holder) -> None:
    other = holders.Holder(name="elsewhere/p-1-x", role="p", host="elsewhere", pid=1, lock=-1)
    queue.hold("job:mine", holder, now=NOW)
    queue.hold("job:mine-too", holder, now=NOW)
    queue.hold("job:theirs", other, now=NOW)
    free = queue.hold("job:free", holder, now=NOW)
    assert free is not None
    queue.give_back(free, now=NOW)

    assert queue.beat(holder) == 2

    assert dict(Lane.objects.values_list("name", "beat")) == {
        "job:mine": 2,
        "job:mine-too": 2,
        "job:theirs": 1,
        "job:free": 1,
    }


def test_the_fence_never_repeats(holder: Holder) -> None:
    factories.enqueue()
    runs = []
    for _ in range(3):
        claimed = factories.claim(holder)
        runs.append(claimed.run_id)
        queue.give_back(claimed, now=NOW)
        Run.objects.all().delete()

    assert runs == sorted(set(runs))
