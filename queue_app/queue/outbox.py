"""The way out: a response waits, is being sent, and arrived, failed, or nobody can tell."""

from __future__ import annotations

import logging
import random

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from queue_app import clock, events, sql, wakeup
from queue_app.events import NewEvent, clip
from queue_app.faults import MOST_TEXT
from queue_app.limits import legible
from queue_app.masking import mask
from queue_app.models import Response
from queue_app.queue import rows
from queue_app.retries import JITTER
from queue_app.states import ResponseStatus
from queue_app.values import Claim, NewResponse

logger = logging.getLogger(__name__)

# Nobody delivers on these: their readers see the history or the stream.
UNSERVED = frozenset({"web", "api", "cli", "heartbeat", "schedule", "chatroom", "internal"})
_AT_ONCE = 500


def respond(new: NewResponse, *, now: int | None = None) -> int:
    """Move (nothing) → pending for an answer that no run's end brings; return its row id."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        told = rows.keep_response(cursor, new, now=at)
        events.record(cursor, [told], now=at)
        transaction.on_commit(wakeup.ring)
    row_id = int(told.data["responseId"])
    logger.info("responding response=%d message=%s channel=%s", row_id, new.message_id, new.channel)
    return row_id


def sending(response_id: int, claim: Claim) -> bool:
    """Move pending → sending under the channel's run; False when it no longer waits or the lane is lost."""
    waiting = Response.objects.pending().filter(pk=response_id)
    with transaction.atomic(), connection.cursor() as cursor:
        # Under a run that has ended nobody would ever doubt it: it would be sending for good.
        cursor.execute(sql.statements().LANE_OF_RUN, (claim.lane, claim.run_id))
        if cursor.fetchone() is None:
            logger.warning("claim was lost lane=%s run=%d sending", claim.lane, claim.run_id)
            return False
        return bool(waiting.update(status=ResponseStatus.SENDING, run_id=claim.run_id))


def ack(response_id: int, *, now: int | None = None) -> bool:
    """Move pending or sending → acked; False when it was acked before or is gone."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        under_way = Response.objects.filter(
            pk=response_id, status__in=[ResponseStatus.PENDING, ResponseStatus.SENDING]
        )
        if not under_way.update(status=ResponseStatus.ACKED, acked_at=at, run_id=None):
            return False
        row = Response.objects.get(pk=response_id)
        data = {"responseId": row.pk, "messageId": row.message_id, "channel": row.channel}
        told = NewEvent("response_acked", row.agent, row.conversation_id, data)
        events.record(cursor, [told], now=at)
    logger.info("acked response=%d channel=%s", response_id, row.channel)
    return True


def undelivered(
    response_id: int, claim: Claim, error: str, *, permanent: bool, now: int | None = None
) -> bool:
    """Move sending → pending after a wait, or → dead when the platform refused it for good."""
    at = clock.now() if now is None else now
    conf = settings.TINYOFFICE.queue
    reason = legible(error)[:MOST_TEXT]
    with transaction.atomic(), connection.cursor() as cursor:
        mine = Response.objects.filter(
            pk=response_id, status=ResponseStatus.SENDING, run_id=claim.run_id
        )
        if (row := mine.first()) is None:
            return False
        dead = permanent or row.retry_count + 1 >= conf.max_attempts
        wait = conf.retry_waits[min(row.retry_count, len(conf.retry_waits) - 1)]
        spread = 1 + random.uniform(-JITTER, JITTER)  # noqa: S311  spreads waits, keeps no secret
        mine.update(
            status=ResponseStatus.DEAD if dead else ResponseStatus.PENDING,
            retry_count=F("retry_count") + 1,
            available_at=at + round(wait * spread),
            last_error=mask(reason),
            run_id=None,
        )
        data = {
            "responseId": row.pk,
            "messageId": row.message_id,
            "error": clip(reason),
            "dead": dead,
        }
        told = NewEvent("response_failed", row.agent, row.conversation_id, data)
        events.record(cursor, [told], now=at)
    logger.info("undelivered response=%d dead=%s", response_id, dead)
    return True


def ack_unserved(before: int, *, now: int | None = None) -> int:
    """Move pending → acked what waits since before on channels that nobody serves."""
    at = clock.now() if now is None else now
    waiting = Response.objects.pending().filter(channel__in=UNSERVED, available_at__lt=before)
    acked = 0
    while some := list(waiting.values_list("pk", flat=True)[:_AT_ONCE]):
        acked += waiting.filter(pk__in=some).update(status=ResponseStatus.ACKED, acked_at=at)
    return acked
