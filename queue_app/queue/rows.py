"""The rows that several transitions write, inside their caller's transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.backends.utils import CursorWrapper

from queue_app import ids, sql
from queue_app.events import NewEvent, clip
from queue_app.faults import Fault
from queue_app.masking import mask
from queue_app.states import RunOutcome
from queue_app.values import Claim, HeldMessage, NewMessage, NewResponse, Usage

DRAWS = 20


class IdTaken(Exception):
    """A message id is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a new message stands: its conversation, what caused it, and when."""

    conversation_id: str
    parent_id: str | None
    now: int


def put_in_line(cursor: CursorWrapper, new: NewMessage, place: Place, prefix: str) -> NewEvent:
    """Insert a pending message under an id drawn for it, with its history line."""
    for _ in range(DRAWS):
        try:
            return put_in_line_as(cursor, new, place, ids.new_id(prefix))
        except IdTaken:
            continue
    raise RuntimeError(f"no free message id with the prefix {prefix} in {DRAWS} draws")


def put_in_line_as(
    cursor: CursorWrapper, new: NewMessage, place: Place, message_id: str
) -> NewEvent:
    """Insert a pending message with its history line; raise IdTaken when the id is in use."""
    statements = sql.statements()
    cursor.execute(statements.INSERT_MESSAGE, _columns(new, place, message_id))
    if cursor.rowcount == 0:
        raise IdTaken(message_id)
    cursor.execute(statements.ENSURE_LANE, (f"agent:{new.agent}",))
    content = mask(new.message if new.received is None else new.received)
    author = new.from_agent or new.sender
    cursor.execute(
        statements.INSERT_HISTORY,
        (
            new.agent,
            "user",
            new.channel,
            author,
            message_id,
            content,
            place.conversation_id,
            place.now,
        ),
    )
    told = {
        "messageId": message_id,
        "channel": new.channel,
        "sender": new.sender,
        "fromAgent": new.from_agent,
        "message": content[:4000],
    }
    return NewEvent("message_enqueued", new.agent, place.conversation_id, told)


def _columns(new: NewMessage, place: Place, message_id: str) -> tuple[str | int | None, ...]:
    return (
        message_id,
        new.channel,
        new.sender,
        new.sender_id,
        new.message,
        new.agent,
        new.files_json,
        place.conversation_id,
        new.from_agent,
        new.person,
        new.team,
        new.thread,
        place.parent_id,
        new.hop,
        place.now if new.available_at is None else new.available_at,
        place.now,
        place.now,
    )


def keep_response(cursor: CursorWrapper, new: NewResponse, *, now: int) -> NewEvent:
    """Insert a pending response."""
    cursor.execute(
        sql.statements().INSERT_RESPONSE,
        (
            new.message_id,
            new.channel,
            new.sender,
            new.sender_id,
            new.message,
            new.original_message,
            new.agent,
            new.files_json,
            new.metadata,
            new.conversation_id,
            new.thread,
            now,
            now,
        ),
    )
    (row_id,) = cursor.fetchone()
    told = {
        "responseId": row_id,
        "messageId": new.message_id,
        "channel": new.channel,
        "sender": new.sender,
        "message": clip(new.message),
    }
    return NewEvent("response_ready", new.agent, new.conversation_id, told)


def settle(
    cursor: CursorWrapper,
    batch: Sequence[HeldMessage],
    ended: Sequence[HeldMessage],
    cost: float | None,
    now: int,
) -> None:
    """Count ended messages out of their conversations, in one order everywhere: no deadlock.

    The conversation of the batch's head pays for the run, also when nothing ended.
    """
    open_ends = Counter(row.conversation_id for row in ended)
    shares = {batch[0].conversation_id: cost} if batch and cost else {}
    for conversation_id in sorted({*open_ends, *shares}):
        cursor.execute(
            sql.statements().SETTLE_CONVERSATION,
            (
                open_ends[conversation_id],
                shares.get(conversation_id, 0.0),
                now,
                conversation_id,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """How a run ended and what it used."""

    outcome: RunOutcome
    fault: Fault | None
    usage: Usage


def close_run(cursor: CursorWrapper, claim: Claim, closing: Closing, now: int) -> None:
    """Close a run, once, with all that is known of it."""
    fault, usage = closing.fault, closing.usage
    failed: tuple[str | int | None, ...] = (None, None, None, None)
    if fault is not None:
        partial = mask(fault.partial) if fault.partial else None
        failed = (fault.error_class, mask(fault.message), partial, fault.exit_code)
    cursor.execute(
        sql.statements().CLOSE_RUN,
        (
            now,
            now,
            closing.outcome,
            *failed,
            usage.provider,
            usage.model,
            usage.input_tokens,
            usage.output_tokens,
            usage.cost,
            claim.run_id,
        ),
    )
