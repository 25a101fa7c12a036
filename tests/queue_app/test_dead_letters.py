from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from queue_app import queue
from queue_app.errors import NotDead, UnknownMessage
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import Audit, Conversation, Event, Message
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LATER = NOW + 3_600_000
KEY = "sk-abcdefghijklmnopqrstuvwxyz"
VERBS: dict[str, Callable[[int], None]] = {
    "retry": lambda row_id: queue.retry_dead(row_id, "Alice", now=LATER),
    "edit": lambda row_id: queue.edit_and_retry(row_id, "better", "Alice", now=LATER),
    "discard": lambda row_id: queue.discard_dead(row_id, "Alice", now=LATER),
}


def dead(holder: Holder, text: str = "hello") -> Message:
    """Return a message that died of its own fault."""
    accepted = factories.enqueue(text)
    claimed = factories.claim(holder)
    assert queue.fail(claimed, factories.fault(ErrorClass.REFUSED, "Refused."), now=NOW)
    return factories.row(accepted.message_id)


def test_a_retried_message_goes_to_the_end_of_the_line_with_a_fresh_count(holder: Holder) -> None:
    row = dead(holder)
    factories.enqueue("came later", person="bob", now=NOW + 5)

    queue.retry_dead(row.pk, "Alice", now=LATER)

    row.refresh_from_db()
    assert (row.status, row.retry_count, row.manual_retries) == ("pending", 0, 1)
    assert (row.available_at, row.updated_at, row.created_at) == (LATER, LATER, NOW)
    assert (row.last_error, row.error_class) == ("Refused.", "refused")
    conversation = Conversation.objects.get(pk=row.conversation_id)
    assert (conversation.open, conversation.messages) == (1, 1)
    assert (conversation.state, conversation.last_at) == ("open", LATER)
    line = Audit.objects.get()
    assert (line.actor, line.action, line.subject, line.detail) == (
        "Alice",
        "retry",
        f"message {row.pk}",
        None,
    )
    event = Event.objects.latest("id")
    assert event.type == "message_retried"
    assert json.loads(event.data) == {
        "messageId": row.message_id,
        "by": "Alice",
        "manualRetries": 1,
    }
    assert factories.claim(holder, now=LATER).primary.message == "came later"


def test_every_retry_by_hand_is_counted(holder: Holder) -> None:
    row = dead(holder)

    for _ in range(3):
        queue.retry_dead(row.pk, "Alice", now=LATER)
        claimed = factories.claim(holder, now=LATER)
        queue.fail(claimed, factories.fault(ErrorClass.REFUSED), now=LATER)

    row.refresh_from_db()
    assert (row.status, row.retry_count, row.manual_retries) == ("dead", 1, 3)


def test_a_retry_reopens_a_closed_conversation(holder: Holder) -> None:
    row = dead(holder)
    Conversation.objects.update(state="closed")

    queue.retry_dead(row.pk, "Alice", now=LATER)

    assert Conversation.objects.get().state == "open"


def test_a_retried_message_can_be_completed(holder: Holder) -> None:
    row = dead(holder)
    queue.retry_dead(row.pk, "Alice", now=LATER)

    claimed = factories.claim(holder, now=LATER)
    assert queue.complete(claimed, factories.answer(claimed), now=LATER)

    row.refresh_from_db()
    assert row.status == "completed"
    assert Conversation.objects.get().open == 0


def test_an_edited_message_runs_with_its_new_text_and_the_audit_keeps_both(holder: Holder) -> None:
    row = dead(holder, "delete it all")

    queue.edit_and_retry(row.pk, "delete the first", "Alice", now=LATER)

    row.refresh_from_db()
    assert (row.status, row.message, row.manual_retries) == ("pending", "delete the first", 1)
    line = Audit.objects.get()
    assert (line.action, line.subject) == ("edit and retry", f"message {row.pk}")
    assert json.loads(line.detail or "") == {"before": "delete it all", "after": "delete the first"}
    assert factories.claim(holder, now=LATER).primary.message == "delete the first"


def test_a_discarded_message_is_gone_and_the_audit_keeps_its_row(holder: Holder) -> None:
    row = dead(holder, "hello")

    queue.discard_dead(row.pk, "Alice", now=LATER)

    assert not Message.objects.exists()
    line = Audit.objects.get()
    assert (line.at, line.actor, line.action, line.subject) == (
        LATER,
        "Alice",
        "discard",
        f"message {row.pk}",
    )
    kept = json.loads(line.detail or "")["row"]
    columns = {field.attname for field in Message._meta.fields}
    assert kept == {name: getattr(row, name) for name in columns}
    event = Event.objects.latest("id")
    assert (event.type, event.agent, event.conversation_id) == (
        "message_discarded",
        "coder",
        row.conversation_id,
    )
    assert json.loads(event.data) == {"messageId": row.message_id, "by": "Alice"}
    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.open) == (1, 0)


@pytest.mark.parametrize("text", [f"use {KEY}", f"key:\n{KEY}", f"key:\t{KEY}\nok"])
def test_the_audit_masks_secrets_and_stays_readable(text: str, holder: Holder) -> None:
    row = dead(holder, text)
    queue.edit_and_retry(row.pk, f"{text} now", "Alice", now=LATER)
    claimed = factories.claim(holder, now=LATER)
    queue.fail(claimed, factories.fault(ErrorClass.REFUSED), now=LATER)
    queue.discard_dead(row.pk, "Alice", now=LATER)

    edited, discarded = [json.loads(line.detail or "") for line in Audit.objects.order_by("id")]
    masked = text.replace(KEY, "sk-a•••")
    assert edited == {"before": masked, "after": f"{masked} now"}
    assert discarded["row"]["message"] == f"{masked} now"


def test_the_audit_does_not_mistake_lines_of_a_text_for_a_password(holder: Holder) -> None:
    text = "see http://host:80\n@coder"
    row = dead(holder, text)

    queue.edit_and_retry(row.pk, "see there", "Alice", now=LATER)

    assert json.loads(Audit.objects.get().detail or "")["before"] == text


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", ["pending", "processing", "completed"])
def test_what_is_not_dead_is_neither_retried_nor_discarded(
    verb: str, status: str, holder: Holder
) -> None:
    row = factories.row(factories.enqueue().message_id)
    if status != "pending":
        claimed = factories.claim(holder)
    if status == "completed":
        queue.complete(claimed, factories.answer(claimed), now=NOW)
    before = factories.tables()

    with pytest.raises(NotDead) as refused:
        VERBS[verb](row.pk)

    assert str(refused.value) == (
        f"Message {row.pk} is {status}, not dead, so it can be neither retried nor discarded. "
        "Somebody may have been quicker; load the list again."
    )
    assert factories.tables() == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_message_that_is_gone_is_unknown(verb: str, holder: Holder) -> None:
    row = dead(holder)
    queue.discard_dead(row.pk, "Bob", now=NOW)
    before = factories.tables()

    with pytest.raises(UnknownMessage) as refused:
        VERBS[verb](row.pk)

    assert str(refused.value) == (
        f"There is no message {row.pk}. It may have been pruned or discarded; "
        "the audit and the agent's history still tell of it."
    )
    assert factories.tables() == before


def test_only_the_quicker_of_two_retries_counts(holder: Holder) -> None:
    row = dead(holder)
    queue.retry_dead(row.pk, "Alice", now=LATER)

    with pytest.raises(NotDead, match=f"Message {row.pk} is pending, not dead"):
        queue.retry_dead(row.pk, "Bob", now=LATER)

    row.refresh_from_db()
    assert row.manual_retries == 1
    assert Conversation.objects.get().open == 1
