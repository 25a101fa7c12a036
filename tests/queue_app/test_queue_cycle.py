from __future__ import annotations

import pytest

from queue_app import queue
from queue_app.holders import Holder
from queue_app.models import AgentMessage, Conversation, Event, Lane, Response, Run, RunMessage
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_is_accepted_claimed_and_completed_with_all_its_rows(holder: Holder) -> None:
    accepted = factories.enqueue("fix it", received="@coder fix it")

    claimed = factories.claim(holder, now=factories.NOW + 5)
    assert queue.complete(claimed, factories.answer(claimed, "fixed"), now=factories.NOW + 9)

    message = factories.row(accepted.message_id)
    assert (message.status, message.run_id, message.claimed_by) == (
        "completed",
        claimed.run_id,
        "coder",
    )
    assert list(AgentMessage.objects.values_list("role", "content")) == [
        ("user", "@coder fix it"),
        ("assistant", "fixed"),
    ]
    assert Response.objects.get().message == "fixed"
    run = Run.objects.get()
    assert (run.outcome, run.wait_ms, run.run_ms, run.attempt) == ("completed", 5, 4, 1)
    assert RunMessage.objects.get().message_id == accepted.message_id
    lane = Lane.objects.get(name="agent:coder")
    assert (lane.run_id, lane.holder, lane.completed) == (None, None, 1)
    conversation = Conversation.objects.get(pk=accepted.conversation_id)
    assert (conversation.messages, conversation.open) == (1, 0)
    assert list(Event.objects.order_by("id").values_list("type", flat=True)) == [
        "message_enqueued",
        "message_received",
        "agent_routed",
        "chain_step_start",
        "chain_step_done",
        "response_ready",
    ]
