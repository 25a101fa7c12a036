"""The sweep that django-q2 makes every minute: recover, expire, tidy, prune; idempotent and quick."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import connection

from queue_app import clock, holders, queue
from queue_app.models import Conversation, Message
from queue_app.states import ConversationState
from tinyoffice.conf import Conf

logger = logging.getLogger(__name__)


def sweep(now: int | None = None) -> dict[str, int]:
    """Do all of it once; return what was done, by name."""
    conf: Conf = settings.TINYOFFICE
    at = clock.now() if now is None else now
    done = {
        "recovered": queue.recover_stale(now=at),
        "expired": queue.expire_blocked(now=at),
        "acked": queue.ack_unserved(at - conf.retention.unserved, now=at),
        "closed": _close_idle(at - conf.retention.conversation_idle),
        "locks": holders.sweep(conf.home),
        **{f"pruned {name}": count for name, count in queue.prune(conf.retention, now=at).items()},
    }
    _checkpoint()
    busy = {name: count for name, count in done.items() if count}
    logger.info("maintained %s", " ".join(f"{k.replace(' ', '_')}={v}" for k, v in busy.items()))
    return done


def _close_idle(idle_since: int) -> int:
    """Close conversations in which nothing waits and nothing happened since."""
    idle = Conversation.objects.filter(state="open", open=0, last_at__lt=idle_since)
    return idle.update(state=ConversationState.CLOSED)


def _checkpoint() -> None:
    """Empty the write-ahead log while nobody works; whoever is busy is not waited for."""
    if connection.vendor != "sqlite" or Message.objects.processing().exists():
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.execute(
            f"PRAGMA busy_timeout = {settings.DATABASES['default']['OPTIONS']['timeout'] * 1000}"
        )
