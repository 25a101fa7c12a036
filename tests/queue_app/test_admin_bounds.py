"""The admin's lists cost the same however long the tables behind them grow."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queue_app.admin import base
from queue_app.admin.base import BoundedPaginator
from queue_app.admin.dead_letters import DeadLetter
from queue_app.holders import Holder
from queue_app.models import Conversation, Event, Message, Run
from tests import factories
from tests.queue_app.admin_cast import MODELS, cancelled, fill, list_of

pytestmark = pytest.mark.django_db(transaction=True)

EACH = 55
GROWING = "agent_messages audit chat_messages conversations events intakes messages responses runs"
SEARCHES: list[dict[str, Any]] = [
    {"q": "fix"},
    {"agent": "coder"},
    {"channel": "api"},
    {"status": "pending"},
    {"status": "completed"},
    {"outcome": "failed"},
    {"error_class": "refused"},
    {"age": "24h"},
]


def statements(client: Client, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    sent = [query["sql"] for query in captured]
    return [sql for sql in sent if re.search(rf'FROM "({GROWING.replace(" ", "|")})"', sql)]


def plan(sql: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return [row[3] for row in cursor.fetchall()]


def narrowed(sql: str) -> bool:
    """Tell whether an index or the window keeps the rows few that a search looks through."""
    few = r"\"(id|updated_at)\" >|\"status\" = '(pending|processing|dead)'|\"finished\" IS NULL"
    return re.search(few, sql) is not None


def test_no_list_counts_or_reads_a_growing_table_in_full(
    admin_client: Client, holder: Holder
) -> None:
    fill(holder, EACH)

    for model in MODELS:
        for query in ({}, *SEARCHES):
            for sql in statements(admin_client, list_of(model, **query)):
                assert "DISTINCT" not in sql, sql
                assert "LIMIT" in sql or narrowed(sql), sql


def test_no_search_or_filter_looks_through_a_growing_table(
    admin_client: Client, holder: Holder
) -> None:
    fill(holder, EACH)
    searched = set()

    for model in set(MODELS) - {Conversation}:
        for query in SEARCHES:
            for sql in statements(admin_client, list_of(model, **query)):
                assert narrowed(sql) or sql.endswith("LIMIT 1"), sql
                searched.add(model)

    assert {model._meta.db_table for model in searched} == {*GROWING.split()} - {"conversations"}


@pytest.mark.sqlite_only
def test_no_list_sorts_its_table(admin_client: Client, holder: Holder) -> None:
    fill(holder, EACH)
    statuses = [list_of(Message, status=value) for value in ("pending", "processing", "dead")]

    for address in [*map(list_of, MODELS), *statuses, list_of(Message, o="3.-4")]:
        for sql in statements(admin_client, address):
            # A tie between equal times is broken by the id; that sorts the tied rows only.
            sorts = [
                step for step in plan(sql) if "TEMP B-TREE" in step and "LAST TERM" not in step
            ]
            assert not sorts, (address, sorts)


@pytest.mark.sqlite_only
def test_live_and_dead_messages_are_listed_through_their_indexes(
    admin_client: Client, holder: Holder
) -> None:
    fill(holder, 2)
    indexes = {
        list_of(Message, status="pending"): "messages_pending",
        list_of(Message, status="processing"): "messages_held",
        list_of(DeadLetter): "messages_dead",
        list_of(DeadLetter, q="fix", age="24h"): "messages_dead",
        list_of(Run, outcome="going_on"): "runs_going_on",
    }

    for address, index in indexes.items():
        for sql in statements(admin_client, address):
            assert index in " ".join(plan(sql)), (address, sql)


def test_a_list_takes_the_same_number_of_statements_for_one_row_and_for_fifty(
    admin_client: Client, holder: Holder
) -> None:
    def counts() -> dict[str, int]:
        counted = {}
        for model in MODELS:
            with CaptureQueriesContext(connection) as captured:
                admin_client.get(list_of(model))
            counted[model.__name__] = len(captured)
        return counted

    fill(holder)
    admin_client.get(list_of(Message))
    few = counts()
    fill(holder, EACH, first=1)

    assert counts() == few


def test_a_list_reads_no_whole_texts(admin_client: Client, holder: Holder) -> None:
    factories.enqueue("long " * 10_000)

    listed = next(sql for sql in statements(admin_client, list_of(Message)) if "ORDER BY" in sql)

    assert re.search(r"SUBSTR(ING)?\(\"messages\".\"message\"", listed)
    assert listed.count('"messages"."message"') == 1
    assert '"messages"."last_error"' not in listed


def test_a_long_list_is_counted_up_to_its_cap_only() -> None:
    class Short(BoundedPaginator):
        most = 3

    cancelled(5)
    rows = Message.objects.order_by("-pk")

    assert (Short(rows, 2).count, Short(rows, 2).capped, Short(rows, 2).num_pages) == (3, True, 2)


def test_searches_look_at_the_newest_rows_and_say_so(
    admin_client: Client, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MOST_SEARCHED", 2)
    for text in ("third time", "second", "first"):
        factories.enqueue(text)

    def texts(**query: str) -> list[str]:
        listed = admin_client.get(list_of(Message, **query)).context["cl"].result_list
        return [row.message_start for row in listed]

    assert texts() == ["first", "second", "third time"]
    assert texts(q="ir") == ["first"]
    assert texts(channel="api") == ["first", "second"]
    assert texts(status="pending", q="ir") == ["third time", "first"]
    page = admin_client.get(list_of(Event, agent="coder")).content.decode()
    assert "look at the newest 2 rows" in page
