"""The good end: answers, follow-ups, history and the run's record commit together or not at all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from queue_app import clock, events, sql, wakeup
from queue_app.events import NewEvent, clip
from queue_app.masking import mask
from queue_app.queue import rooms, rows
from queue_app.states import RunOutcome
from queue_app.values import Claim, Outcome

logger = logging.getLogger(__name__)


def complete(claim: Claim, outcome: Outcome, *, now: int | None = None) -> bool:
    """Move processing → completed with answers, follow-ups and history; False if the claim was lost."""
    at = clock.now() if now is None else now
    closing = rows.Closing(outcome=RunOutcome.COMPLETED, fault=None, usage=outcome.usage)
    with transaction.atomic(), connection.cursor() as cursor:
        if not _give_up_lane(cursor, claim, completed=len(claim.messages)):
            return False
        # Before the follow-ups: all conversations are locked in one order, so nobody deadlocks.
        rows.settle(cursor, claim.messages, claim.messages, outcome.usage.cost, at)
        told = _tell_done(claim, outcome) + _tell_stopped(claim, outcome)
        told += _hand_on(cursor, claim, outcome, at)
        told += _answer(cursor, claim, outcome, told, at)
        _keep_answer(cursor, claim, outcome, at)
        cursor.execute(sql.statements().COMPLETE_HELD, (at, claim.run_id))
        _must_have_moved(cursor.rowcount, claim)
        rows.close_run(cursor, claim, closing, at)
        events.record(cursor, told, now=at)
        transaction.on_commit(wakeup.ring)
    logger.info("completed lane=%s run=%d count=%d", claim.lane, claim.run_id, len(claim.messages))
    return True


def _give_up_lane(cursor: CursorWrapper, claim: Claim, *, completed: int) -> bool:
    cursor.execute(
        sql.statements().GIVE_UP_LANE, (completed, 0, None, None, claim.lane, claim.run_id)
    )
    if cursor.rowcount == 0:
        logger.warning("claim was lost lane=%s run=%d completed", claim.lane, claim.run_id)
    return bool(cursor.rowcount)


def _hand_on(cursor: CursorWrapper, claim: Claim, outcome: Outcome, now: int) -> list[NewEvent]:
    """Put the follow-ups in line if the conversation has room for all of them, else none."""
    follow_ups = outcome.follow_ups
    if not follow_ups:
        return []
    conf, primary, count = settings.TINYOFFICE.queue, claim.primary, len(outcome.follow_ups)
    admitted = max(new.hop for new in follow_ups) <= conf.max_hops
    if admitted:
        cursor.execute(
            sql.statements().ADMIT_FOLLOW_UPS,
            (count, count, primary.conversation_id, count, conf.max_conversation_messages),
        )
        admitted = cursor.rowcount == 1
    if not admitted:
        refused = {"runId": claim.run_id, "messages": count}
        return [NewEvent("loop_stopped", primary.agent, primary.conversation_id, refused)]
    place = rows.Place(
        conversation_id=primary.conversation_id, parent_id=primary.message_id, now=now
    )
    told: list[NewEvent] = []
    for new in follow_ups:
        enqueued = rows.put_in_line(cursor, new, place, "internal")
        handoff = {
            "messageId": enqueued.data["messageId"],
            "fromAgent": primary.agent,
            "toAgent": new.agent,
        }
        told += [
            enqueued,
            NewEvent("chain_handoff", primary.agent, primary.conversation_id, handoff),
        ]
    return told


def _answer(
    cursor: CursorWrapper, claim: Claim, outcome: Outcome, told: Sequence[NewEvent], now: int
) -> list[NewEvent]:
    """Write posts and responses; what answers somebody also says what was stopped."""
    note = _note(told, outcome)
    posts = [
        post if post.deliveries else replace(post, message=_noted(post.message, note))
        for post in outcome.posts
    ]
    written = rooms.post_for_run(cursor, claim, posts, now)
    note = _note([*told, *written], outcome)
    for response in outcome.responses:
        said = replace(response, message=_noted(response.message, note))
        written.append(rows.keep_response(cursor, said, now=now))
    return written


def _noted(text: str, note: str) -> str:
    return f"{text}\n\n{note}" if note else text


def _note(told: Sequence[NewEvent], outcome: Outcome) -> str:
    """Return what the sender hears of stopped loops, each reason once."""
    stops = [event.data for event in told if event.type == "loop_stopped"]
    return "\n".join(dict.fromkeys(data.get("reason", outcome.refusal_note) for data in stops))


def _keep_answer(cursor: CursorWrapper, claim: Claim, outcome: Outcome, now: int) -> None:
    primary = claim.primary
    cursor.execute(
        sql.statements().INSERT_HISTORY,
        (
            primary.agent,
            "assistant",
            primary.channel,
            primary.agent,
            primary.message_id,
            mask(outcome.text),
            primary.conversation_id,
            now,
        ),
    )


def _must_have_moved(moved: int, claim: Claim) -> None:
    if moved != len(claim.messages):
        raise RuntimeError(
            f"run {claim.run_id} held {len(claim.messages)} messages, {moved} moved; nothing was written"
        )


def _tell_done(claim: Claim, outcome: Outcome) -> list[NewEvent]:
    primary = claim.primary
    data = {
        "messageId": primary.message_id,
        "runId": claim.run_id,
        "messages": len(claim.messages),
        "content": clip(outcome.text),
    }
    return [NewEvent("chain_step_done", primary.agent, primary.conversation_id, data)]


def _tell_stopped(claim: Claim, outcome: Outcome) -> list[NewEvent]:
    primary = claim.primary
    return [
        NewEvent(
            "loop_stopped",
            primary.agent,
            primary.conversation_id,
            {"runId": claim.run_id, "messages": 1, "reason": reason},
        )
        for reason in outcome.stopped
    ]
