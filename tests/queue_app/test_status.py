"""How the queue stands, without ever counting history."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app import queue, status
from queue_app.holders import Holder
from queue_app.models import Lane, Process
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


def test_an_empty_queue_has_no_depths():
    assert status.depths(NOW) == status.Depths(
        pending=0, processing=0, completed=0, dead=0, oldest_pending_ms=None
    )


def test_depths_follow_the_messages(holder: Holder):
    factories.enqueue("first", "coder")
    queue.complete(claimed := factories.claim(holder), factories.answer(claimed), now=NOW)
    factories.enqueue("second", "coder")
    factories.claim(holder)
    factories.enqueue("third", "writer", now=NOW + 1_000)
    factories.enqueue("fourth", "writer", now=NOW + 2_000)

    found = status.depths(NOW + 5_000)

    assert (found.pending, found.processing, found.completed, found.dead) == (2, 1, 1, 0)
    assert found.oldest_pending_ms == 4_000


def test_what_is_due_later_has_not_waited():
    factories.enqueue("later", "writer", now=NOW + 60_000)

    assert status.depths(NOW).oldest_pending_ms is None


def test_lanes_that_take_nothing_up_are_told_with_their_reason():
    Lane.objects.create(name="agent:open")
    Lane.objects.create(name="agent:past", blocked_until=NOW, blocked_reason="was busy")
    Lane.objects.create(name="agent:stuck", blocked_until=NOW + 1, blocked_reason="no key")
    Lane.objects.create(name="agent:tired", paused=True)

    assert [(lane.name, lane.paused, lane.reason) for lane in status.waiting_lanes(NOW)] == [
        ("agent:stuck", False, "no key"),
        ("agent:tired", True, None),
    ]


def test_processes_are_told_with_their_age():
    Process.objects.create(holder="h/web-1-a", name="web", host="h", pid=1, started=1, pulse=NOW)

    assert status.processes(NOW + 2_000) == [
        status.Seen(name="web", host="h", pid=1, seen_ms_ago=2_000)
    ]


@pytest.mark.sqlite_only
def test_no_depth_is_read_by_walking_through_history():
    with CaptureQueriesContext(
        connection,
    ) as asked:
        status.depths(NOW)

    for query in asked.captured_queries:
        if "messages" not in query["sql"]:
            continue
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = " ".join(str(line[3]) for line in cursor.fetchall())
        assert "INDEX messages_" in plan, f"{plan}: {query['sql']}"
