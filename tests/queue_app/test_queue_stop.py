from __future__ import annotations

import json

import pytest

from queue_app import queue
from queue_app.errors import NotPending, UnknownRun
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import Audit, Conversation, Event, Lane, Message, Response, Run
from queue_app.values import Usage
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "agent:coder"


def test_a_request_to_stop_is_noted_told_and_audited_but_moves_nothing(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)

    queue.request_stop(claimed.run_id, "Alice", now=NOW + 5)

    run = Run.objects.get()
    assert (run.stop_by, run.finished) == ("Alice", None)
    assert Message.objects.get().status == "processing"
    assert Lane.objects.get().run_id == claimed.run_id
    event = Event.objects.latest("id")
    assert (event.type, event.agent) == ("run_stopping", "coder")
    assert json.loads(event.data) == {"runId": claimed.run_id, "by": "Alice"}
    line = Audit.objects.get()
    assert (line.at, line.actor, line.action, line.subject) == (
        NOW + 5,
        "Alice",
        "stop",
        f"run {claimed.run_id}",
    )


def test_a_stopped_runs_head_is_dead_and_the_rest_goes_back_uncharged(holder: Holder) -> None:
    head, *rest = [factories.enqueue(text).message_id for text in "abc"]
    claimed = factories.claim(holder)
    queue.request_stop(claimed.run_id, "Alice", now=NOW)

    assert queue.end_stopped(claimed, Usage(cost=0.5), now=NOW + 9)

    row = factories.row(head)
    assert (row.status, row.retry_count) == ("dead", 0)
    assert (row.last_error, row.error_class) == ("Stopped by Alice.", "stopped")
    for message_id in rest:
        row = factories.row(message_id)
        assert (row.status, row.retry_count, row.last_error, row.error_class) == (
            "pending",
            0,
            None,
            None,
        )
    run = Run.objects.get()
    assert (run.outcome, run.error_class, run.error) == ("stopped", "stopped", "Stopped by Alice.")
    assert run.cost == 0.5
    lane = Lane.objects.get()
    assert (lane.run_id, lane.blocked_until, lane.strikes, lane.completed) == (None, None, 0, 0)
    assert factories.events()[-2:] == ["response_ready", "message_dead"]
    assert "message_failed" not in factories.events()
    response = Response.objects.get()
    assert response.message_id == head
    assert "could not answer “a”: Stopped by Alice. It is kept" in response.message
    assert Conversation.objects.get(pk=head).open == 0
    claimed = factories.claim(holder, now=NOW + 9)
    assert [row.message for row in claimed.messages] == ["b", "c"]


@pytest.mark.parametrize("end", ["fail", "lose", "give_back", "auth"])
def test_a_wish_to_stop_is_stronger_than_any_other_end(end: str, holder: Holder) -> None:
    accepted = factories.enqueue()
    claimed = factories.claim(holder)
    queue.request_stop(claimed.run_id, "Alice", now=NOW)

    ends = {
        "fail": lambda: queue.fail(claimed, factories.fault(), now=NOW),
        "lose": lambda: queue.lose(LANE, claimed.run_id, now=NOW),
        "give_back": lambda: queue.give_back(claimed, now=NOW),
        "auth": lambda: queue.fail(claimed, factories.fault(ErrorClass.AUTH), now=NOW),
    }
    assert ends[end]()

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count, row.last_error) == ("dead", 0, "Stopped by Alice.")
    assert Run.objects.get().outcome == "stopped"
    lane = Lane.objects.get()
    assert (lane.blocked_until, lane.strikes) == (None, 0)
    assert Response.objects.count() == 1


def test_a_completion_that_commits_first_wins_over_a_wish_to_stop(holder: Holder) -> None:
    accepted = factories.enqueue()
    claimed = factories.claim(holder)
    queue.request_stop(claimed.run_id, "Alice", now=NOW)

    assert queue.complete(claimed, factories.answer(claimed), now=NOW)
    assert queue.end_stopped(claimed, now=NOW) is False

    assert factories.row(accepted.message_id).status == "completed"
    assert Run.objects.get().outcome == "completed"


def test_a_run_that_ended_or_never_was_cannot_be_stopped(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    before = factories.tables()

    for run_id in (claimed.run_id, claimed.run_id + 1):
        with pytest.raises(UnknownRun) as refused:
            queue.request_stop(run_id, "Alice", now=NOW)
        assert str(refused.value) == (
            f"Run {run_id} is not going on (ended, stopped before, or never started). "
            "Look at the conversation for how it ended."
        )

    assert factories.tables() == before


def test_a_run_is_asked_to_stop_once(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    queue.request_stop(claimed.run_id, "Alice", now=NOW)
    before = factories.tables()

    with pytest.raises(UnknownRun, match=f"Run {claimed.run_id} is not going on"):
        queue.request_stop(claimed.run_id, "Bob", now=NOW)

    assert factories.tables() == before


def test_a_run_stopped_by_the_office_itself_says_so(holder: Holder) -> None:
    accepted = factories.enqueue()
    claimed = factories.claim(holder)

    assert queue.end_stopped(claimed, now=NOW)

    assert factories.row(accepted.message_id).last_error == "Stopped by the office."


def test_a_cancelled_message_is_dead_and_its_sender_is_told(holder: Holder) -> None:
    accepted = factories.enqueue("never mind", channel="telegram")
    factories.enqueue("other")
    row = factories.row(accepted.message_id)

    queue.cancel(row.pk, "Alice", now=NOW + 5)

    row.refresh_from_db()
    assert (row.status, row.retry_count, row.updated_at) == ("dead", 0, NOW + 5)
    assert (row.last_error, row.error_class) == ("Cancelled by Alice.", "cancelled")
    assert "could not answer “never mind”: Cancelled by Alice." in Response.objects.get().message
    assert factories.events()[-2:] == ["response_ready", "message_dead"]
    assert Conversation.objects.get(pk=accepted.conversation_id).open == 0
    line = Audit.objects.get()
    assert (line.actor, line.action, line.subject) == ("Alice", "cancel", f"message {row.pk}")
    claimed = factories.claim(holder, now=NOW + 5)
    assert [held.message for held in claimed.messages] == ["other"]


@pytest.mark.parametrize("status", ["processing", "completed", "dead"])
def test_what_no_longer_waits_cannot_be_cancelled(status: str, holder: Holder) -> None:
    row = factories.row(factories.enqueue().message_id)
    if status == "dead":
        queue.cancel(row.pk, "Alice", now=NOW)
    else:
        claimed = factories.claim(holder)
    if status == "completed":
        queue.complete(claimed, factories.answer(claimed), now=NOW)
    before = factories.tables()

    with pytest.raises(NotPending) as refused:
        queue.cancel(row.pk, "Alice", now=NOW)

    assert str(refused.value) == (
        f"Message {row.pk} is {status}, not pending, so it cannot be cancelled. "
        "Stop its run if it is processing; retry or discard it if it is dead."
    )
    assert factories.tables() == before
