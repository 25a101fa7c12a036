"""Taking work: a free lane, a new run, and one invocation's worth of messages."""

from __future__ import annotations

import logging

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from queue_app import audit, batches, clock, events, sql, wakeup
from queue_app.batches import Batching
from queue_app.events import NewEvent, clip
from queue_app.holders import Holder
from queue_app.models import Lane
from queue_app.values import Claim, HeldMessage

logger = logging.getLogger(__name__)

_AGENT = "agent:"


def lane_of(agent: str) -> str:
    """Return the name of an agent's lane."""
    return f"{_AGENT}{agent}"


def ready_lanes(*, now: int | None = None) -> list[str]:
    """Return the agents' lanes that are free, may run, and have somebody waiting."""
    at = clock.now() if now is None else now
    with connection.cursor() as cursor:
        cursor.execute(sql.statements().READY_LANES, (at, at))
        return [name for (name,) in cursor.fetchall()]


def claim(
    lane: str, holder: Holder, batching: Batching = Batching.TOGETHER, *, now: int | None = None
) -> Claim | None:
    """Move pending → processing for the head of the line and what goes with it, if the lane is free."""
    statements = sql.statements()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statements.FREE_LANE, (lane, clock.now() if now is None else now))
        if cursor.fetchone() is None:
            return None
        # Read when the lane is ours: no run seems to begin before the one ahead of it ended.
        at = clock.now() if now is None else now
        batch = _batch(cursor, lane.removeprefix(_AGENT), batching, at)
        if not batch:
            return None
        run_id = _open_run(cursor, lane, holder, batch[0], at)
        cursor.execute(
            statements.HOLD_MESSAGES, (run_id, at, statements.ids([row.id for row in batch]))
        )
        cursor.execute(statements.INSERT_RUN_MESSAGES, (run_id,))
        events.record(cursor, _picked_up(batch, run_id), now=at)
    logger.info("claimed lane=%s run=%d count=%d holder=%s", lane, run_id, len(batch), holder.name)
    return Claim(lane=lane, run_id=run_id, started=at, messages=batch)


def hold(lane: str, holder: Holder, *, now: int | None = None) -> Claim | None:
    """Take a lane that has no messages, such as a channel's or a job's; None when it is held."""
    at = clock.now() if now is None else now
    statements = sql.statements()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statements.ENSURE_LANE, (lane,))
        cursor.execute(statements.FREE_LANE, (lane, at))
        if cursor.fetchone() is None:
            return None
        run_id = _open_run(cursor, lane, holder, None, at)
    logger.info("holding lane=%s run=%d holder=%s", lane, run_id, holder.name)
    return Claim(lane=lane, run_id=run_id, started=at)


def beat(holder: Holder) -> int:
    """Show that this holder lives, on all its lanes in one statement; return how many it holds."""
    with connection.cursor() as cursor:
        cursor.execute(sql.statements().BEAT, (holder.name,))
        return int(cursor.rowcount)


def pause(agent: str, by: str, *, now: int | None = None) -> bool:
    """Let the agent start nothing new; intake goes on. False when it was paused before."""
    return _set_paused(agent, True, by, now)


def resume(agent: str, by: str, *, now: int | None = None) -> bool:
    """Let a paused agent run again; False when it was not paused."""
    return _set_paused(agent, False, by, now)


def unblock(lane: str, *, now: int | None = None) -> bool:
    """Let a blocked lane run at once, as after a settings change; False when it was not blocked."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        blocked = Lane.objects.filter(name=lane, blocked_until__isnull=False)
        if not blocked.update(blocked_until=None, blocked_reason=None, strikes=0):
            return False
        told = NewEvent("lane_unblocked", lane.removeprefix(_AGENT), None, {"lane": lane})
        events.record(cursor, [told], now=at)
        transaction.on_commit(wakeup.ring)
    return True


def _set_paused(agent: str, paused: bool, by: str, now: int | None) -> bool:
    at = clock.now() if now is None else now
    lane = lane_of(agent)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.statements().ENSURE_LANE, (lane,))
        if not Lane.objects.filter(name=lane, paused=not paused).update(paused=paused):
            return False
        audit.record(by, "pause" if paused else "resume", f"agent {agent}", now=at)
        name = "lane_paused" if paused else "lane_unblocked"
        events.record(cursor, [NewEvent(name, agent, None, {"lane": lane, "by": by})], now=at)
        transaction.on_commit(wakeup.ring)
    return True


def _batch(
    cursor: CursorWrapper, agent: str, batching: Batching, now: int
) -> tuple[HeldMessage, ...]:
    line = _line(cursor, agent, now, batches.look_ahead(batching))
    if len(line) == 1 and batching is Batching.ONE and line[0].channel == batches.ROOM:
        line = _line(cursor, agent, now, batches.MOST_MESSAGES)
    return tuple(batches.take(line, batching))


def _line(cursor: CursorWrapper, agent: str, now: int, most: int) -> list[HeldMessage]:
    cursor.execute(sql.statements().LINE, (agent, now, most))
    return [HeldMessage(*row) for row in cursor.fetchall()]


def _open_run(
    cursor: CursorWrapper, lane: str, holder: Holder, head: HeldMessage | None, now: int
) -> int:
    statements = sql.statements()
    agent = head.agent if head else None
    attempt = head.retry_count + 1 if head else 1
    waited = max(0, now - head.created_at) if head else None
    cursor.execute(statements.INSERT_RUN, (lane, agent, attempt, holder.host, now, waited))
    run_id = int(cursor.fetchone()[0])
    cursor.execute(statements.TAKE_LANE, (run_id, holder.name, lane))
    if cursor.rowcount != 1:
        raise RuntimeError(f"lane {lane} was free and could not be taken")
    return run_id


def _picked_up(batch: tuple[HeldMessage, ...], run_id: int) -> list[NewEvent]:
    told: list[NewEvent] = []
    for row in batch:
        data = {"messageId": row.message_id, "runId": run_id}
        told.append(
            NewEvent(
                "message_received",
                row.agent,
                row.conversation_id,
                {
                    **data,
                    "channel": row.channel,
                    "sender": row.sender,
                    "message": clip(row.message),
                },
            )
        )
        told.append(NewEvent("agent_routed", row.agent, row.conversation_id, data))
    primary = batch[0]
    started = {
        "messageId": primary.message_id,
        "runId": run_id,
        "fromAgent": primary.from_agent,
        "attempt": primary.retry_count + 1,
        "messages": len(batch),
    }
    told.append(NewEvent("chain_step_start", primary.agent, primary.conversation_id, started))
    return told
