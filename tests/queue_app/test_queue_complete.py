from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, connection

from queue_app import queue
from queue_app.holders import Holder
from queue_app.models import (
    AgentMessage,
    Conversation,
    Event,
    Lane,
    Message,
    Response,
    Run,
    RunMessage,
)
from queue_app.values import Claim, NewMessage, Outcome, Submission, Usage
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "agent:coder"
KEY = "sk-abcdefghijklmnopqrstuvwxyz"


def handoff(agent: str = "writer", hop: int = 1, text: str = "your turn") -> NewMessage:
    return factories.new_message(text, agent, channel="internal", from_agent="coder", hop=hop)


def claimed_in_conversation_of(messages: int, holder: Holder) -> Claim:
    """Claim the first message of a conversation that has so many."""
    rows = [factories.new_message("hello", f"agent-{n}") for n in range(messages)]
    queue.enqueue(Submission(source="api", messages=rows), now=NOW)
    return factories.claim(holder, "agent-0")


def test_the_answer_is_kept_for_its_channel_in_the_history_and_told(holder: Holder) -> None:
    accepted = factories.enqueue("hello", channel="telegram", thread="7")
    claimed = factories.claim(holder)
    outcome = factories.answer(claimed, "hi", usage=Usage(provider="p", model="m", cost=0.25))

    assert queue.complete(claimed, outcome, now=NOW + 5)

    response = Response.objects.get()
    assert (response.status, response.message, response.original_message) == (
        "pending",
        "hi",
        "hello",
    )
    assert (response.available_at, response.created_at) == (NOW + 5, NOW + 5)
    line = AgentMessage.objects.latest("id")
    assert (line.agent_id, line.role, line.sender, line.content) == (
        "coder",
        "assistant",
        "coder",
        "hi",
    )
    assert (line.message_id, line.conversation_id) == (accepted.message_id,) * 2
    assert factories.events()[-2:] == ["chain_step_done", "response_ready"]
    assert json.loads(Event.objects.get(type="chain_step_done").data) == {
        "messageId": accepted.message_id,
        "runId": claimed.run_id,
        "messages": 1,
        "content": "hi",
    }
    assert json.loads(Event.objects.latest("id").data) == {
        "responseId": response.pk,
        "messageId": accepted.message_id,
        "channel": "telegram",
        "sender": "Alice",
        "message": "hi",
    }
    run = Run.objects.get()
    assert (run.provider, run.model, run.cost, run.outcome) == ("p", "m", 0.25, "completed")
    assert Conversation.objects.get().cost == 0.25


def test_a_batch_is_completed_as_a_whole(holder: Holder) -> None:
    conversations = [factories.enqueue(text).conversation_id for text in "abc"]
    claimed = factories.claim(holder)
    first = factories.answer(claimed).responses[0]
    outcome = Outcome(
        text="done",
        responses=[first, replace(first, channel="telegram", files=["a.txt"])],
        usage=Usage(cost=1.5),
    )

    assert queue.complete(claimed, outcome, now=NOW)

    assert set(Message.objects.values_list("status", "run_id")) == {("completed", claimed.run_id)}
    assert Lane.objects.get().completed == 3
    assert list(Response.objects.values_list("channel", "files")) == [
        ("api", None),
        ("telegram", '["a.txt"]'),
    ]
    assert AgentMessage.objects.filter(role="assistant").count() == 1
    kept = dict(Conversation.objects.values_list("id", "cost"))
    assert [kept[conversation_id] for conversation_id in conversations] == [1.5, 0.0, 0.0]
    assert set(Conversation.objects.values_list("open", flat=True)) == {0}


def test_an_agent_may_have_nothing_to_say(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)

    assert queue.complete(claimed, Outcome(text=""), now=NOW)

    assert not Response.objects.exists()
    assert Message.objects.get().status == "completed"


def test_the_running_total_of_a_lane_goes_on(holder: Holder) -> None:
    for _ in range(3):
        factories.enqueue()
        claimed = factories.claim(holder)
        queue.complete(claimed, factories.answer(claimed), now=NOW)

    assert Lane.objects.get().completed == 3


def test_follow_ups_join_the_conversation_of_the_head_of_the_line(holder: Holder) -> None:
    root = factories.enqueue("first")
    factories.enqueue("second")
    claimed = factories.claim(holder)

    queue.complete(
        claimed, factories.answer(claimed, follow_ups=[handoff(), handoff("tester")]), now=NOW + 5
    )

    rows = list(Message.objects.pending().order_by("id"))
    assert [row.agent for row in rows] == ["writer", "tester"]
    for row in rows:
        assert row.message_id.startswith("internal_")
        assert (row.conversation_id, row.parent_id) == (root.conversation_id, root.message_id)
        assert (row.hop, row.from_agent, row.available_at) == (1, "coder", NOW + 5)
    conversation = Conversation.objects.get(pk=root.conversation_id)
    assert (conversation.messages, conversation.open) == (3, 2)
    assert factories.events()[-6:] == [
        "chain_step_done",
        "message_enqueued",
        "chain_handoff",
        "message_enqueued",
        "chain_handoff",
        "response_ready",
    ]
    told = Event.objects.filter(type="chain_handoff").earliest("id")
    assert json.loads(told.data) == {
        "messageId": rows[0].message_id,
        "fromAgent": "coder",
        "toAgent": "writer",
    }
    line = AgentMessage.objects.get(agent_id="writer")
    assert (line.role, line.sender, line.content) == ("user", "coder", "your turn")
    assert queue.ready_lanes(now=NOW + 5) == ["agent:tester", "agent:writer"]


def test_a_run_remembers_which_message_caused_the_one_it_was_given(holder: Holder) -> None:
    root = factories.enqueue()
    claimed = factories.claim(holder)
    queue.complete(claimed, factories.answer(claimed, follow_ups=[handoff()]), now=NOW)

    second = factories.claim(holder, "writer")

    given = RunMessage.objects.get(run_id=second.run_id)
    assert (given.parent_id, given.hop) == (root.message_id, 1)


@pytest.mark.parametrize(("before", "follow_ups"), [(48, 2), (49, 1), (1, 49)])
def test_a_conversation_has_room_for_fifty_messages(
    before: int, follow_ups: int, holder: Holder
) -> None:
    claimed = claimed_in_conversation_of(before, holder)
    outcome = factories.answer(claimed, "done", follow_ups=[handoff()] * follow_ups)

    assert queue.complete(claimed, outcome, now=NOW)

    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.open) == (50, 49)
    assert "loop_stopped" not in factories.events()
    assert Response.objects.get().message == "done"


@pytest.mark.parametrize(("before", "follow_ups"), [(50, 1), (49, 2), (1, 50)])
def test_without_room_nothing_is_handed_on_and_the_answer_says_so(
    before: int, follow_ups: int, holder: Holder
) -> None:
    claimed = claimed_in_conversation_of(before, holder)
    outcome = factories.answer(claimed, "done", follow_ups=[handoff()] * follow_ups)

    assert queue.complete(claimed, outcome, now=NOW)

    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.open) == (before, before - 1)
    assert not Message.objects.filter(agent="writer").exists()
    assert not Lane.objects.filter(name="agent:writer").exists()
    assert factories.row(claimed.primary.message_id).status == "completed"
    assert Response.objects.get().message == (
        "done\n\n(Handing this on was stopped: the conversation has reached its limit.)"
    )
    assert AgentMessage.objects.latest("id").content == "done"
    assert "chain_handoff" not in factories.events()
    told = Event.objects.get(type="loop_stopped")
    assert (told.agent, told.conversation_id) == ("agent-0", conversation.pk)
    assert json.loads(told.data) == {"runId": claimed.run_id, "messages": follow_ups}


@pytest.mark.parametrize(("hop", "handed_on"), [(10, True), (11, False), (1_000_000, False)])
def test_a_chain_has_ten_hops(hop: int, handed_on: bool, holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    follow_ups = [handoff(hop=1), handoff("tester", hop=hop)]

    queue.complete(
        claimed,
        factories.answer(claimed, follow_ups=follow_ups, refusal_note="Enough."),
        now=NOW,
    )

    assert Message.objects.pending().count() == (2 if handed_on else 0)
    assert ("loop_stopped" in factories.events()) is not handed_on
    assert Response.objects.get().message == ("done" if handed_on else "done\n\nEnough.")


def test_a_completion_after_the_claim_was_lost_writes_nothing(holder: Holder) -> None:
    factories.enqueue()
    late = factories.claim(holder)
    queue.lose(LANE, late.run_id, now=NOW)
    factories.claim(holder)
    before = factories.tables()

    assert queue.complete(late, factories.answer(late, follow_ups=[handoff()]), now=NOW) is False

    assert factories.tables() == before


def test_a_run_is_completed_once(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    assert queue.complete(claimed, factories.answer(claimed), now=NOW)
    before = factories.tables()

    assert queue.complete(claimed, factories.answer(claimed), now=NOW) is False

    assert factories.tables() == before


def test_a_completion_that_does_not_find_its_messages_writes_nothing(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    Message.objects.all().delete()
    before = factories.tables()

    with pytest.raises(
        RuntimeError,
        match=f"run {claimed.run_id} held 1 messages, 0 moved; nothing was written",
    ):
        queue.complete(claimed, factories.answer(claimed), now=NOW)

    assert factories.tables() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lanes",
        "UPDATE conversations",
        "INSERT INTO messages",
        "INSERT INTO responses",
        "INSERT INTO agent_messages",
        "UPDATE messages",
        "UPDATE runs",
        "INSERT INTO events",
    ],
)
def test_nothing_is_kept_when_a_statement_of_the_completion_fails(
    statement: str, holder: Holder
) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    outcome = factories.answer(claimed, follow_ups=[handoff()])
    before = factories.tables()

    def broken(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if statement in sql:
            raise OperationalError("disk I/O error")
        return execute(sql, *rest)

    with (
        connection.execute_wrapper(broken),
        pytest.raises(OperationalError, match="disk I/O error"),
    ):
        queue.complete(claimed, outcome, now=NOW)

    assert factories.tables() == before
    assert queue.complete(claimed, outcome, now=NOW)


def test_secrets_in_an_answer_are_delivered_but_not_copied(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)

    queue.complete(claimed, factories.answer(claimed, f"your key is {KEY}"), now=NOW)

    assert Response.objects.get().message == f"your key is {KEY}"
    assert AgentMessage.objects.latest("id").content == "your key is sk-a•••"
    assert KEY not in repr(factories.tables()["events"])


def test_a_secret_at_the_end_of_an_events_room_is_not_shown_in_part(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    token = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"

    queue.complete(claimed, factories.answer(claimed, "x" * 3_960 + " " + token), now=NOW)

    for event in Event.objects.filter(type__in=["chain_step_done", "response_ready"]):
        assert "AAEhBOweik6ad9r" not in event.data


@pytest.mark.concurrency
def test_two_completions_of_the_same_two_conversations_do_not_wait_for_each_other(
    holder: Holder,
) -> None:
    for root, first, second in [("a-root", NOW, NOW + 2), ("z-root", NOW + 1, NOW + 1)]:
        rows = [
            factories.new_message("hello", "coder", available_at=first),
            factories.new_message("hello", "writer", available_at=second),
        ]
        queue.enqueue(Submission(source="api", messages=rows, message_id=root), now=NOW)
    claims = [factories.claim(holder, agent, now=NOW + 9) for agent in ("coder", "writer")]
    assert [claimed.primary.conversation_id for claimed in claims] == ["a-root", "z-root"]
    both_hold_one = threading.Barrier(2)

    def met(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "UPDATE conversations" in sql:
            with suppress(threading.BrokenBarrierError):
                both_hold_one.wait(0.3)
        return result

    def complete(claimed: Claim) -> bool:
        try:
            with connection.execute_wrapper(met):
                outcome = factories.answer(claimed, follow_ups=[handoff("tester")])
                return queue.complete(claimed, outcome, now=NOW + 9)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(complete, claims)) == [True, True]

    assert list(Conversation.objects.values_list("messages", "open")) == [(3, 1), (3, 1)]
