"""How a run ends when it is not completed: failed, lost, given back or stopped.

Each end gives up the lane first; whoever finds it gone writes nothing.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from queue_app import clock, events, notices, retries, sql, wakeup
from queue_app.events import NewEvent, clip
from queue_app.faults import ErrorClass, Fault
from queue_app.masking import mask
from queue_app.models import Lane, Message, Response, Run
from queue_app.queue import jobs, rows
from queue_app.states import ResponseStatus, RunOutcome
from queue_app.values import NOTHING_USED, Claim, HeldMessage, Usage
from tinyoffice.conf import QueueConf

logger = logging.getLogger(__name__)

_LOST = Fault(error_class=ErrorClass.LOST, message="The processor that ran it died or stood still.")
_UNCHARGED = retries.Verdict(charged=False, dead=False, wait=0, blames_agent=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """An end other than completion, as it is about to be written."""

    outcome: RunOutcome
    fault: Fault | None
    verdict: retries.Verdict
    buried: tuple[HeldMessage, ...] = ()  # these end dead; the rest goes back into the line
    usage: Usage = NOTHING_USED


def fail(
    claim: Claim,
    fault: Fault,
    usage: Usage = NOTHING_USED,
    *,
    now: int | None = None,
) -> bool:
    """Move processing → pending or dead, by whose fault it is; False if the claim was lost."""
    return _end(claim, RunOutcome.FAILED, fault, usage, now)


def lose(lane: str, run_id: int, *, now: int | None = None) -> bool:
    """Give a lane back whose holder is gone; an attempt is spent. False if somebody ended it first."""
    at = clock.now() if now is None else now
    return _end(
        Claim(lane=lane, run_id=run_id, started=at), RunOutcome.LOST, _LOST, NOTHING_USED, at
    )


def give_back(claim: Claim, *, now: int | None = None) -> bool:
    """Move processing → pending without an attempt, as at shutdown; False if the claim was lost."""
    return _end(claim, RunOutcome.GIVEN_BACK, None, NOTHING_USED, now)


def end_stopped(claim: Claim, usage: Usage = NOTHING_USED, *, now: int | None = None) -> bool:
    """End a run that a person asked to stop: the primary is dead, the rest goes back uncharged."""
    return _end(claim, RunOutcome.STOPPED, None, usage, now)


def recover_stale(*, now: int | None = None) -> int:
    """Free messages that are processing although no lane holds their run; return how many."""
    at = clock.now() if now is None else now
    overdue = at - _conf().stale_after
    held = Lane.objects.filter(run_id__isnull=False).values("run_id")
    stale = Message.objects.processing().filter(updated_at__lt=overdue).exclude(run_id__in=held)
    runs = [int(run_id) for run_id in stale.values_list("run_id", flat=True).distinct() if run_id]
    return sum(_recover(run_id, at) for run_id in runs)


def _recover(run_id: int, now: int) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        batch = _held(cursor, run_id)
        verdict = _judge(_LOST, batch, 0, now)
        buried = batch if verdict.dead else ()
        end = _End(outcome=RunOutcome.LOST, fault=_LOST, verdict=verdict, buried=buried)
        told = _move(cursor, run_id, batch, end, now)
        _close_run(cursor, Claim(lane="", run_id=run_id, started=now), end, now)
        events.record(cursor, told, now=now)
        transaction.on_commit(wakeup.ring)
    logger.warning("recovered stale run=%d count=%d", run_id, len(batch))
    return len(batch)


def _held(cursor: CursorWrapper, run_id: int) -> tuple[HeldMessage, ...]:
    cursor.execute(sql.statements().HELD, (run_id,))
    return tuple(HeldMessage(*row) for row in cursor.fetchall())


def _conf() -> QueueConf:
    conf: QueueConf = settings.TINYOFFICE.queue
    return conf


def _end(
    claim: Claim, outcome: RunOutcome, fault: Fault | None, usage: Usage, now: int | None
) -> bool:
    at = clock.now() if now is None else now
    statements = sql.statements()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statements.LANE_OF_RUN, (claim.lane, claim.run_id))
        if (lane := cursor.fetchone()) is None:
            logger.warning("claim was lost lane=%s run=%d %s", claim.lane, claim.run_id, outcome)
            return False
        batch = _held(cursor, claim.run_id)
        end = replace(_decide(claim, outcome, fault, batch, lane[0], at), usage=usage)
        _block_lane(cursor, claim, end, lane[0], at)
        told = _move(cursor, claim.run_id, batch, end, at)
        if end.verdict.blames_agent and lane[0] == 0:
            told.append(_tell_blocked(claim, end, at))
        told += _doubt_deliveries(claim.run_id)
        told += jobs.leave(claim.run_id, end.outcome, at)
        _close_run(cursor, claim, end, at)
        events.record(cursor, told, now=at)
        transaction.on_commit(wakeup.ring)
    logger.info(
        "ended lane=%s run=%d outcome=%s error_class=%s dead=%d returned=%d",
        claim.lane, claim.run_id, end.outcome, end.fault and end.fault.error_class,
        len(end.buried), len(batch) - len(end.buried),
    )  # fmt: skip
    return True


def _decide(
    claim: Claim,
    outcome: RunOutcome,
    fault: Fault | None,
    batch: tuple[HeldMessage, ...],
    strikes: int,
    now: int,
) -> _End:
    """Return what this end does; a person's wish to stop is stronger than any other end."""
    stop_by = Run.objects.values_list("stop_by", flat=True).get(pk=claim.run_id)
    if stop_by is not None or outcome is RunOutcome.STOPPED:
        stopped = Fault(
            error_class=ErrorClass.STOPPED, message=f"Stopped by {stop_by or 'the office'}."
        )
        return _End(outcome=RunOutcome.STOPPED, fault=stopped, verdict=_UNCHARGED, buried=batch[:1])
    if fault is None:
        return _End(outcome=outcome, fault=None, verdict=_UNCHARGED)
    verdict = _judge(fault, batch, strikes, now)
    buried = batch if verdict.dead else ()
    return _End(outcome=outcome, fault=fault, verdict=verdict, buried=buried)


def _judge(fault: Fault, batch: tuple[HeldMessage, ...], strikes: int, now: int) -> retries.Verdict:
    record = retries.Record(
        attempts=max((row.retry_count for row in batch), default=0),
        alone=len(batch) == 1,
        strikes=strikes,
    )
    chance = random.uniform(-1, 1)  # noqa: S311  spreads waits, keeps no secret
    return retries.judge(fault, record, _conf(), now=now, chance=chance)


def _block_lane(cursor: CursorWrapper, claim: Claim, end: _End, strikes: int, now: int) -> None:
    until = now + end.verdict.wait if end.verdict.wait else None
    reason = f"{end.fault.error_class}: {mask(end.fault.message)}" if until and end.fault else None
    if end.verdict.blames_agent:
        strikes += 1
    elif end.outcome is RunOutcome.FAILED:
        strikes = 0  # the agent itself works: it was asked and failed at this message
    cursor.execute(
        sql.statements().GIVE_UP_LANE, (0, strikes, until, reason, claim.lane, claim.run_id)
    )


def _move(
    cursor: CursorWrapper, run_id: int, batch: tuple[HeldMessage, ...], end: _End, now: int
) -> list[NewEvent]:
    """Bury what ends dead and put the rest back into its place in line."""
    statements = sql.statements()
    told: list[NewEvent] = []
    charge = int(end.verdict.charged)
    error = mask(end.fault.message) if end.fault else None
    error_class = end.fault.error_class if end.fault else None
    for row in end.buried:
        cursor.execute(statements.BURY_HELD, (charge, error, error_class, now, run_id, row.id))
        told.append(rows.keep_response(cursor, notices.given_up(row, error or ""), now=now))
        told.append(_tell_failed("message_dead", row, run_id, end))
    rows.settle(cursor, batch, end.buried, end.usage.cost, now)
    returned = [row for row in batch if row not in end.buried]
    if returned:
        stopped = end.outcome is RunOutcome.STOPPED
        kept = (None, None) if stopped else (error, error_class)
        cursor.execute(statements.RETURN_HELD, (charge, *kept, now, run_id))
        if end.fault is not None and not stopped:
            told += [_tell_failed("message_failed", row, run_id, end) for row in returned]
    return told


def _close_run(cursor: CursorWrapper, claim: Claim, end: _End, now: int) -> None:
    rows.close_run(
        cursor, claim, rows.Closing(outcome=end.outcome, fault=end.fault, usage=end.usage), now
    )


def _doubt_deliveries(run_id: int) -> list[NewEvent]:
    """What a channel was sending when its run ended may have arrived or not; nobody can tell."""
    doubtful = Response.objects.filter(status=ResponseStatus.SENDING, run_id=run_id)
    told = [
        NewEvent("response_failed", row.agent, row.conversation_id, {"responseId": row.pk})
        for row in doubtful
    ]
    if told:
        doubtful.update(
            status=ResponseStatus.UNKNOWN,
            run_id=None,
            last_error="The channel ended while it was sending; it may have arrived.",
        )
    return told


def _tell_failed(name: str, row: HeldMessage, run_id: int, end: _End) -> NewEvent:
    data = {
        "messageId": row.message_id,
        "runId": run_id,
        "errorClass": end.fault and end.fault.error_class,
        "error": clip(end.fault.message) if end.fault else None,
        "retryCount": row.retry_count + int(end.verdict.charged),
    }
    return NewEvent(name, row.agent, row.conversation_id, data)


def _tell_blocked(claim: Claim, end: _End, now: int) -> NewEvent:
    data = {
        "lane": claim.lane,
        "until": now + end.verdict.wait,
        "errorClass": end.fault and end.fault.error_class,
        "error": clip(end.fault.message) if end.fault else None,
    }
    return NewEvent("lane_blocked", claim.lane.removeprefix("agent:"), None, data)
