"""The way in: one thing sent, one intake, a row for each addressee, all or none."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import repeat

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from queue_app import clock, events, ids, sql, wakeup
from queue_app.errors import DuplicateMessage
from queue_app.events import NewEvent
from queue_app.queue import rows
from queue_app.values import Accepted, NewMessage, Submission

logger = logging.getLogger(__name__)


def enqueue(new: Submission, *, now: int | None = None) -> Accepted:
    """Move (nothing) → pending; raise DuplicateMessage when it was sent before."""
    (result,) = enqueue_all([new], now=now)
    if isinstance(result, DuplicateMessage):
        raise result
    return result


def enqueue_all(
    submissions: Sequence[Submission], *, now: int | None = None
) -> list[Accepted | DuplicateMessage]:
    """Accept many things in one commit; each gets its own result, in order."""
    at = clock.now() if now is None else now
    if not submissions:
        return []
    try:
        results = _accept_fresh(submissions, at)
    except rows.IdTaken:
        results = _accept_one_by_one(submissions, at)
    _log_all(submissions, results)
    return results


def _accept_fresh(submissions: Sequence[Submission], now: int) -> list[Accepted | DuplicateMessage]:
    """Accept all in a few statements; raise IdTaken, nothing written, when one was sent before."""
    drafts = [(new, _message_ids(new)) for new in submissions]
    statements = sql.statements()
    with transaction.atomic(), connection.cursor() as cursor:
        rows.insert_new(
            cursor, statements.INSERT_INTAKE, [_intake(*draft, now) for draft in drafts]
        )
        rows.insert_new(
            cursor, statements.INSERT_CONVERSATION, [_conversation(*draft, now) for draft in drafts]
        )
        entries = [entry for draft in drafts for entry in _entries(*draft, now)]
        events.record(cursor, rows.put_all_in_line(cursor, entries), now=now)
        transaction.on_commit(wakeup.ring)
    return [Accepted(message_ids=drawn, conversation_id=drawn[0]) for _, drawn in drafts]


def _message_ids(new: Submission) -> tuple[str, ...]:
    further = (ids.new_id(message.channel) for message in new.messages[1:])
    return (new.message_id or _draw(new), *further)


def _intake(new: Submission, drawn: tuple[str, ...], now: int) -> tuple[rows.Value, ...]:
    return (new.source, new.external_id or drawn[0], drawn[0], drawn[0], now)


def _conversation(new: Submission, drawn: tuple[str, ...], now: int) -> tuple[rows.Value, ...]:
    first, count = new.messages[0], len(new.messages)
    return (drawn[0], first.person, first.team, count, count, now)


def _entries(
    new: Submission, drawn: tuple[str, ...], now: int
) -> Iterator[tuple[NewMessage, rows.Place, str]]:
    place = rows.Place(conversation_id=drawn[0], parent_id=None, now=now)
    return zip(new.messages, repeat(place), drawn, strict=False)


def _accept_one_by_one(
    submissions: Sequence[Submission], now: int
) -> list[Accepted | DuplicateMessage]:
    """Accept each on its own, so that a repeat leaves no trace and harms no neighbour."""
    results: list[Accepted | DuplicateMessage] = []
    told: list[NewEvent] = []
    with transaction.atomic(), connection.cursor() as cursor:
        for new in submissions:
            result, its_events = _accept_once(cursor, new, now)
            results.append(result)
            told += its_events
        events.record(cursor, told, now=now)
        transaction.on_commit(wakeup.ring)
    return results


def _accept_once(
    cursor: CursorWrapper, new: Submission, now: int
) -> tuple[Accepted | DuplicateMessage, list[NewEvent]]:
    """Accept one thing; what was sent before or drawn twice leaves no trace of the try."""
    for _ in range(rows.DRAWS):
        try:
            with transaction.atomic():
                return _accept(cursor, new, new.message_id or _draw(new), now)
        except DuplicateMessage as duplicate:
            # Without a key of the sender's, the key is the drawn id: taken, not sent before.
            if new.external_id or new.message_id:
                return duplicate, []
        except rows.IdTaken:
            if new.message_id:
                return DuplicateMessage(new.message_id, new.message_id), []
    raise RuntimeError(f"no free message id in {rows.DRAWS} draws")


def _draw(new: Submission) -> str:
    return ids.new_id(new.messages[0].channel)


def _accept(
    cursor: CursorWrapper, new: Submission, root: str, now: int
) -> tuple[Accepted, list[NewEvent]]:
    remember(cursor, new.source, new.external_id or root, root, now)
    _begin_conversation(cursor, new, root, now)
    place = rows.Place(conversation_id=root, parent_id=None, now=now)
    told = [rows.put_in_line_as(cursor, new.messages[0], place, root)]
    for message in new.messages[1:]:
        told.append(rows.put_in_line(cursor, message, place, message.channel))
    message_ids = tuple(event.data["messageId"] for event in told)
    return Accepted(message_ids=message_ids, conversation_id=root), told


def remember(cursor: CursorWrapper, source: str, external_id: str, root: str, now: int) -> None:
    """Insert the intake of one thing sent; raise DuplicateMessage when it was sent before."""
    statements = sql.statements()
    cursor.execute(statements.INSERT_INTAKE, (source, external_id, root, root, now))
    if cursor.rowcount == 0:
        cursor.execute(statements.FIND_INTAKE, (source, external_id))
        (stored,) = cursor.fetchone()
        raise DuplicateMessage(external_id, stored)


def _begin_conversation(cursor: CursorWrapper, new: Submission, root: str, now: int) -> None:
    first, count = new.messages[0], len(new.messages)
    cursor.execute(
        sql.statements().INSERT_CONVERSATION, (root, first.person, first.team, count, count, now)
    )
    if cursor.rowcount == 0:
        raise rows.IdTaken(root)


def _log_all(
    submissions: Sequence[Submission], results: Sequence[Accepted | DuplicateMessage]
) -> None:
    if len(results) > 1 and all(isinstance(result, Accepted) for result in results):
        first, last = results[0].message_id, results[-1].message_id
        logger.info("enqueued count=%d first=%s last=%s", len(results), first, last)
        return
    for new, result in zip(submissions, results, strict=True):
        _log(new, result)


def _log(new: Submission, result: Accepted | DuplicateMessage) -> None:
    outcome = "enqueued" if isinstance(result, Accepted) else "refused a repeat of"
    agents = ",".join(message.agent for message in new.messages)
    logger.info("%s id=%s source=%s agents=%s", outcome, result.message_id, new.source, agents)
