"""Deleting what is finished and old, in small batches that leave room for others to write."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import models
from django.db.models import Q

from queue_app import clock
from queue_app.models import Event, Intake, Message, Pin, Response
from queue_app.states import MessageStatus, ResponseStatus
from tinyoffice.conf import RetentionConf

AT_ONCE = 1_000
SHORTEST_PAUSE = 0.005


def prune(
    retention: RetentionConf,
    *,
    now: int | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, int]:
    """Delete finished rows older than their retention; return how many per table. Pins stay."""
    at = clock.now() if now is None else now
    finished = at - retention.finished
    progress = Q(type="agent_progress", created_at__lt=at - retention.progress)
    kinds: dict[str, models.QuerySet[models.Model]] = {
        "messages": Message.objects.filter(status=MessageStatus.COMPLETED, updated_at__lt=finished),
        "responses": Response.objects.filter(status=ResponseStatus.ACKED, acked_at__lt=finished),
        "events": Event.objects.filter(created_at__lt=at - retention.events),
        "progress": Event.objects.filter(progress),
        "intakes": Intake.objects.filter(created_at__lt=at - retention.intakes),
    }
    Pin.objects.filter(until__lt=at).delete()
    return {name: _delete(rows, pause) for name, rows in kinds.items()}


def _delete(rows: models.QuerySet[models.Model], pause: Callable[[float], None]) -> int:
    pinned = Pin.objects.filter(table=rows.model._meta.db_table).values("row_id")
    some = rows.exclude(pk__in=pinned).order_by().values_list("pk", flat=True)[:AT_ONCE]
    deleted = 0
    while True:
        began = time.monotonic()
        count, _ = rows.filter(pk__in=list(some.all())).delete()
        deleted += count
        if count < AT_ONCE:
            return deleted
        # As long as the transaction took: two writers in a tight loop starve the processor.
        pause(max(SHORTEST_PAUSE, time.monotonic() - began))
