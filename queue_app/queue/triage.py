"""What people decide: stop, cancel, retry, edit, discard; each guarded and audited."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import F

from queue_app import audit, clock, events, limits, notices, wakeup
from queue_app.errors import NotDead, NotPending, UnknownMessage, UnknownRun
from queue_app.events import NewEvent
from queue_app.faults import ErrorClass
from queue_app.models import Conversation, Lane, Message, Run
from queue_app.queue import rows
from queue_app.states import ConversationState, MessageStatus
from queue_app.values import HeldMessage

logger = logging.getLogger(__name__)

_EXPIRE_AT_ONCE = 200


def request_stop(run_id: int, by: str, *, now: int | None = None) -> None:
    """Ask for a run to be stopped; its holder ends it. Raise UnknownRun when it is not going on."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        going_on = Run.objects.filter(pk=run_id, finished__isnull=True, stop_by__isnull=True)
        if not going_on.update(stop_by=by):
            raise UnknownRun(run_id)
        audit.record(by, "stop", f"run {run_id}", now=at)
        agent = Run.objects.values_list("agent", flat=True).get(pk=run_id)
        told = NewEvent("run_stopping", agent, None, {"runId": run_id, "by": by})
        events.record(cursor, [told], now=at)
        transaction.on_commit(wakeup.ring)
    logger.info("stop requested run=%d by=%s", run_id, by)


def cancel(row_id: int, by: str, *, now: int | None = None) -> None:
    """Move pending → dead; raise NotPending when it no longer waits."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        told = _bury_waiting(cursor, row_id, ErrorClass.CANCELLED, f"Cancelled by {by}.", at)
        if not told:
            raise NotPending(row_id, _status_of(row_id))
        audit.record(by, "cancel", f"message {row_id}", now=at)
        events.record(cursor, told, now=at)
    logger.info("cancelled message=%d by=%s", row_id, by)


def expire_blocked(*, now: int | None = None) -> int:
    """Move pending → dead what waited too long for a blocked agent; return how many."""
    at = clock.now() if now is None else now
    overdue = at - settings.TINYOFFICE.queue.blocked_for_at_most
    expired = 0
    # A lane whose block is over is tried first: the office may have been off for long.
    for lane in Lane.objects.filter(strikes__gt=0, paused=False, blocked_until__gt=at):
        agent = lane.name.removeprefix("agent:")
        waiting = Message.objects.pending().for_agent(agent).filter(available_at__lt=overdue)
        reason = f"Waited too long for a blocked agent ({lane.blocked_reason})."
        for row_id in waiting.in_line().values_list("pk", flat=True)[:_EXPIRE_AT_ONCE]:
            with transaction.atomic(), connection.cursor() as cursor:
                told = _bury_waiting(cursor, row_id, ErrorClass.EXPIRED, reason, at)
                events.record(cursor, told, now=at)
            expired += bool(told)
    return expired


def retry_dead(row_id: int, by: str, *, now: int | None = None) -> None:
    """Move dead → pending, at the end of the line with a fresh count; raise NotDead otherwise."""
    _revive(row_id, by, "retry", None, now)


def edit_and_retry(row_id: int, text: str, by: str, *, now: int | None = None) -> None:
    """Move dead → pending with another text; the audit keeps the difference."""
    _revive(row_id, by, "edit and retry", limits.text("message", text), now)


def discard_dead(row_id: int, by: str, *, now: int | None = None) -> None:
    """Delete a dead message; the audit keeps it. Raise NotDead when it is not dead."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        row = Message.objects.dead().filter(pk=row_id).values().first()
        if row is None or not Message.objects.dead().filter(pk=row_id).delete()[0]:
            raise NotDead(row_id, _status_of(row_id))
        audit.record(by, "discard", f"message {row_id}", now=at, row=row)
        data = {"messageId": row["message_id"], "by": by}
        told = NewEvent("message_discarded", row["agent"], row["conversation_id"], data)
        events.record(cursor, [told], now=at)
    logger.info("discarded message=%d by=%s", row_id, by)


def _revive(row_id: int, by: str, action: str, text: str | None, now: int | None) -> None:
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        before = Message.objects.values_list("message", flat=True).filter(pk=row_id).first()
        changes: dict[str, Any] = {} if text is None else {"message": text}
        moved = (
            Message.objects.dead()
            .filter(pk=row_id)
            .update(
                status=MessageStatus.PENDING,
                retry_count=0,
                manual_retries=F("manual_retries") + 1,
                available_at=at,
                updated_at=at,
                **changes,
            )
        )
        if not moved:
            raise NotDead(row_id, _status_of(row_id))
        row = Message.objects.get(pk=row_id)
        Conversation.objects.filter(pk=row.conversation_id).update(
            open=F("open") + 1, state=ConversationState.OPEN, last_at=at
        )
        difference = {} if text is None else {"before": before, "after": text}
        audit.record(by, action, f"message {row_id}", now=at, **difference)
        data = {"messageId": row.message_id, "by": by, "manualRetries": row.manual_retries}
        told = NewEvent("message_retried", row.agent, row.conversation_id, data)
        events.record(cursor, [told], now=at)
        transaction.on_commit(wakeup.ring)
    logger.info("%s message=%d by=%s", action, row_id, by)


def _bury_waiting(
    cursor: CursorWrapper, row_id: int, error_class: ErrorClass, reason: str, now: int
) -> list[NewEvent]:
    """Move pending → dead and tell the sender; an empty list when it no longer waited."""
    moved = (
        Message.objects.pending()
        .filter(pk=row_id)
        .update(
            status=MessageStatus.DEAD, error_class=error_class, last_error=reason, updated_at=now
        )
    )
    if not moved:
        return []
    columns = HeldMessage.__dataclass_fields__
    row = HeldMessage(*Message.objects.values_list(*columns).get(pk=row_id))
    Conversation.objects.filter(pk=row.conversation_id).update(open=F("open") - 1, last_at=now)
    data = {
        "messageId": row.message_id,
        "runId": None,
        "errorClass": error_class,
        "error": reason,
        "retryCount": row.retry_count,
    }
    return [
        rows.keep_response(cursor, notices.given_up(row, reason), now=now),
        NewEvent("message_dead", row.agent, row.conversation_id, data),
    ]


def _status_of(row_id: int) -> str:
    row = Message.objects.filter(pk=row_id).only("status").first()
    if row is None:
        raise UnknownMessage(row_id)
    return str(row.status)
