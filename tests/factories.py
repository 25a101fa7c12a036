"""Builders that go the real way, so that no test starts from a state the queue cannot reach."""

from __future__ import annotations

from typing import Any

from django.apps import apps

from queue_app import queue
from queue_app.faults import ErrorClass, Fault
from queue_app.holders import Holder
from queue_app.models import Event, Message
from queue_app.values import Accepted, Claim, NewMessage, NewResponse, Outcome, Submission

NOW = 1_800_000_000_000


def new_message(text: str = "hello", agent: str = "coder", **fields: Any) -> NewMessage:
    given = {"channel": "api", "sender": "Alice", "sender_id": "alice", "person": "owner"} | fields
    return NewMessage(message=text, agent=agent, **given)


def submission(text: str = "hello", agent: str = "coder", **fields: Any) -> Submission:
    keys = {key: fields.pop(key) for key in ("external_id", "message_id") if key in fields}
    source = fields.pop("source", "api")
    return Submission(source=source, messages=[new_message(text, agent, **fields)], **keys)


def enqueue(
    text: str = "hello", agent: str = "coder", *, now: int = NOW, **fields: Any
) -> Accepted:
    return queue.enqueue(submission(text, agent, **fields), now=now)


def claim(holder: Holder, agent: str = "coder", *, now: int = NOW, **options: Any) -> Claim:
    claimed = queue.claim(queue.lane_of(agent), holder, now=now, **options)
    assert claimed is not None, f"nothing to claim for {agent}"
    return claimed


def answer(claimed: Claim, text: str = "done", **fields: Any) -> Outcome:
    primary = claimed.primary
    response = NewResponse(
        message_id=primary.message_id,
        channel=primary.channel,
        sender=primary.sender,
        sender_id=primary.sender_id,
        message=text,
        original_message=primary.message,
        agent=primary.agent,
        conversation_id=primary.conversation_id,
    )
    return Outcome(text=text, responses=[response], **fields)


def row(message_id: str) -> Message:
    return Message.objects.get(message_id=message_id)


def new_response(text: str = "done", channel: str = "telegram", **fields: Any) -> NewResponse:
    given = {"message_id": "telegram_1", "sender": "Alice", "sender_id": "alice"} | fields
    return NewResponse(channel=channel, message=text, original_message="hello", **given)


def fault(
    error_class: ErrorClass = ErrorClass.CRASH, text: str = "It broke.", **fields: Any
) -> Fault:
    return Fault(error_class=error_class, message=text, **fields)


def events() -> list[str]:
    return list(Event.objects.order_by("id").values_list("type", flat=True))


def tables() -> dict[str, list[dict[str, Any]]]:
    """Return every row of the queue's tables, to see that nothing or only one thing changed."""
    return {
        model._meta.db_table: list(model.objects.order_by("pk").values())
        for model in apps.get_app_config("queue_app").get_models()
        if not model._meta.proxy
    }
