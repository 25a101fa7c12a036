"""What the admin's tests look at: a row of every kind, and messages that ended dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from queue_app import clock, queue
from queue_app.admin.dead_letters import DeadLetter
from queue_app.faults import ErrorClass, Fault
from queue_app.holders import Holder
from queue_app.models import ChatMessage, Job, Message, Process
from queue_app.values import Submission
from tests import factories

SECRET = "sk-ant-0123456789abcdefghij"
MODELS = sorted(
    (model for model in admin.site._registry if model._meta.app_label == "queue_app"),
    key=lambda model: model.__name__,
)


def list_of(model: Any, **query: Any) -> str:
    name = f"admin:queue_app_{model._meta.model_name}_changelist"
    return reverse(name, query=query or None)


def page_of(row: Any, view: str = "change") -> str:
    return reverse(f"admin:queue_app_{row._meta.model_name}_{view}", args=[row.pk])


def rows_of(model: Any) -> Any:
    return DeadLetter.objects.dead() if model is DeadLetter else model._default_manager.all()


def dead(
    holder: Holder,
    text: str = "hello",
    *,
    now: int | None = None,
    error: str = "No.",
    **fields: Any,
) -> Message:
    at = clock.now() if now is None else now
    accepted = factories.enqueue(text, now=at, **fields)
    claimed = factories.claim(holder, fields.get("agent", "coder"), now=at)
    fault = Fault(error_class=ErrorClass.REFUSED, message=error)
    assert queue.fail(claimed, fault, now=at)
    return factories.row(accepted.message_id)


def cancelled(count: int) -> list[int]:
    rows = [
        Submission(source="api", messages=[factories.new_message(f"text {i}")])
        for i in range(count)
    ]
    for accepted in queue.enqueue_all(rows, now=factories.NOW):
        queue.cancel(factories.row(accepted.message_id).pk, "alice", now=factories.NOW)
    return list(Message.objects.dead().values_list("pk", flat=True))


def fill(holder: Holder, each: int = 1, *, first: int = 0) -> None:
    """Make rows of every kind, the real way where there is one."""
    now = clock.now()
    for i in range(first, first + each):
        done = factories.enqueue(f"fix {i} with {SECRET}", external_id=f"given-{i}", now=now)
        claimed = factories.claim(holder, now=now)
        assert queue.complete(claimed, factories.answer(claimed, f"used {SECRET}"), now=now)
        queue.retry_dead(dead(holder, f"retried {i}", agent=f"writer{i}").pk, "alice", now=now)
        dead(holder, f"poison {i} {SECRET}", agent=f"agent{i % 3}")
        ChatMessage.objects.create(
            team_id="dev", from_agent="coder", message=f"see {done.message_id}", created_at=now
        )
        Job.objects.create(name="backup", requested_by="alice", created_at=now)
        Process.objects.create(
            holder=f"web-{i}", name="web", host="here", pid=i + 1, started=now, pulse=now
        )


def act(
    client: Client, address: str, action: str, rows: Sequence[int], **fields: Any
) -> HttpResponse:
    posted = {"action": action, "_selected_action": rows, "select_across": "0"} | fields
    return client.post(address, posted, follow=True)


def said(response: HttpResponse) -> list[str]:
    return [str(message) for message in response.context["messages"]]
