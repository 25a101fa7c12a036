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

Value = str | int | float | None


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
    (told,) = put_all_in_line(cursor, [(new, place, message_id)])
    return told


def put_all_in_line(
    cursor: CursorWrapper, entries: Sequence[tuple[NewMessage, Place, str]]
) -> list[NewEvent]:
    """Insert pending messages with their history lines; raise IdTaken when one id is in use."""
    statements = sql.statements()
    insert_new(cursor, statements.INSERT_MESSAGE, [_columns(*entry) for entry in entries])
    agents = sorted({new.agent for new, _, _ in entries})
    cursor.executemany(statements.ENSURE_LANE, [(f"agent:{agent}",) for agent in agents])
    history, told = [], []
    for new, place, message_id in entries:
        content = mask(new.message if new.received is None else new.received)
        history.append(_history(new, place, message_id, content))
        told.append(_enqueued(new, place, message_id, content))
    cursor.executemany(statements.INSERT_HISTORY, history)
    return told


def insert_new(cursor: CursorWrapper, statement: str, values: Sequence[tuple[Value, ...]]) -> None:
    """Insert rows that must all be new; raise IdTaken when one was there."""
    cursor.executemany(statement, values)
    if cursor.rowcount != len(values):
        raise IdTaken(statement)


def _history(new: NewMessage, place: Place, message_id: str, content: str) -> tuple[Value, ...]:
    author = new.from_agent or new.sender
    return (
        new.agent,
        "user",
        new.channel,
        author,
        message_id,
        content,
        place.conversation_id,
        place.now,
    )


def _enqueued(new: NewMessage, place: Place, message_id: str, content: str) -> NewEvent:
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
    if touched := sorted({*open_ends, *shares}):
        cursor.executemany(
            sql.statements().SETTLE_CONVERSATION,
            [(open_ends[its], shares.get(its, 0.0), now, its) for its in touched],
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
