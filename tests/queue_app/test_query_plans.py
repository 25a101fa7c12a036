"""The plan of every hot statement: growing tables are searched, never read from end to end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from queue_app import maintenance, queue, status
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import Response
from queue_app.sql import sqlite
from queue_app.watch import Watcher
from tests import factories
from tests.factories import NOW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite_only]

GROWING = (
    "messages|responses|events|agent_messages|chat_messages|runs|run_messages|intakes|conversations"
)
# Partial indexes over what waits, runs or is dead: reading one from end to end is counting it.
SMALL = "messages_pending|messages_held|messages_dead|responses_pending|responses_held"
SCAN = re.compile(rf"SCAN (?:{GROWING})\b(?! USING (?:COVERING )?INDEX (?:{SMALL})\b)")
SORT = "USE TEMP B-TREE"

FRAGMENTS = {"INSERT_EVENTS", "EVENT_ROW", "ORDER_EVENTS"}
SETTINGS = {"QUICK_COMMITS"}
# At most the fifty messages of one run.
MAY_SORT = {"HELD"}


def plan(statement: str, parameters: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [step[-1] for step in cursor.fetchall()]


def hot_statements() -> dict[str, str]:
    named = {
        name: text
        for name, text in vars(sqlite).items()
        if name.isupper() and not name.startswith("_") and isinstance(text, str)
    }
    whole = {name: named[name] for name in named.keys() - FRAGMENTS - SETTINGS}
    return whole | {"insert_events(3)": sqlite.insert_events(3)}


@pytest.mark.parametrize("name", sorted(hot_statements()))
def test_a_hot_statement_searches_by_an_index(name: str) -> None:
    statement = hot_statements()[name]

    steps = plan(statement, ["1"] * statement.count("%s"))

    assert not [step for step in steps if SCAN.search(step)], steps
    if name not in MAY_SORT:
        assert not [step for step in steps if SORT in step], steps
    if name != "READY_LANES":
        assert not [step for step in steps if step.startswith("SCAN lanes")], steps


def test_the_lanes_that_are_ready_are_found_in_order_with_one_search_each() -> None:
    steps = plan(sqlite.READY_LANES, [1, 1])

    assert [step.split(" (")[0] for step in steps] == [
        "SCAN lanes USING INDEX sqlite_autoindex_lanes_1",
        "SEARCH messages EXISTS USING COVERING INDEX messages_pending",
    ]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("LINE", "messages_pending (agent=? AND available_at<?)"),
        ("HELD", "messages_held (run_id=?)"),
        ("COMPLETE_HELD", "messages_held (run_id=?)"),
        ("RETURN_HELD", "messages_held (run_id=?)"),
        ("INSERT_RUN_MESSAGES", "messages_held (run_id=?)"),
        ("BEAT", "lanes_held (holder=?)"),
    ],
)
def test_a_hot_statement_uses_the_partial_index_made_for_it(name: str, index: str) -> None:
    statement = hot_statements()[name]

    assert index in plan(statement, ["1"] * statement.count("%s"))[0]


class Recorder:
    """Notes every statement that reads or changes rows, with its parameters."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, Any]] = []

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
            self.statements.append((sql, params[0] if many else params))
        return execute(sql, params, many, context)


def pick_up_responses() -> list[Response]:
    due = Response.objects.pending().for_channel("telegram").filter(available_at__lte=NOW)
    return list(due.order_by("available_at", "id")[:100])


def triage(holder: Holder) -> None:
    row_id = factories.row(factories.enqueue(agent="writer").message_id).pk
    queue.cancel(row_id, "owner", now=NOW)
    queue.retry_dead(row_id, "owner", now=NOW)
    claimed = factories.claim(holder, "writer")
    queue.request_stop(claimed.run_id, "owner", now=NOW)
    queue.end_stopped(claimed, now=NOW)
    queue.discard_dead(row_id, "owner", now=NOW)


def deliver(holder: Holder) -> None:
    held = queue.hold("channel:telegram", holder, now=NOW)
    assert held is not None
    delivered, failed, doubtful = [
        queue.respond(factories.new_response(), now=NOW) for _ in range(3)
    ]
    for response_id in (delivered, failed, doubtful):
        queue.sending(response_id, held)
    queue.ack(delivered, now=NOW)
    queue.undelivered(failed, held, "later", permanent=False, now=NOW)
    queue.give_back(held, now=NOW)


def run_once(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    follow_ups = [factories.new_message("go on", "tester", hop=1)]
    queue.complete(claimed, factories.answer(claimed, follow_ups=follow_ups), now=NOW)
    for _ in range(2):
        factories.enqueue()
        queue.fail(factories.claim(holder), factories.fault(ErrorClass.REFUSED), now=NOW)
        queue.unblock("agent:coder", now=NOW)


def sweep_after_a_block(holder: Holder) -> None:
    factories.enqueue()
    queue.fail(factories.claim(holder), factories.fault(ErrorClass.AUTH), now=NOW)
    maintenance.sweep(NOW)
    queue.expire_blocked(now=NOW)


ACTS: dict[str, Callable[[Holder], object]] = {
    "counting for the status": lambda holder: status.depths(NOW),
    "picking up responses": lambda holder: pick_up_responses(),
    "delivering": deliver,
    "a person's decisions": triage,
    "runs that end well and badly": run_once,
    "the sweep": sweep_after_a_block,
    "pruning": lambda holder: queue.prune(settings.TINYOFFICE.retention, now=NOW),
    "the watch": lambda holder: Watcher(settings.TINYOFFICE.home, settings.TINYOFFICE.queue).look(),
}


@pytest.mark.parametrize("act", ACTS)
def test_no_act_of_the_queue_reads_a_growing_table_from_end_to_end(
    act: str, holder: Holder
) -> None:
    recorder = Recorder()

    with connection.execute_wrapper(recorder):
        ACTS[act](holder)

    assert recorder.statements
    for sql, params in recorder.statements:
        steps = plan(sql, params)
        assert not [step for step in steps if SCAN.search(step)], (sql, steps)


@pytest.mark.parametrize(
    ("table", "index"),
    [
        ("messages", "messages_done (updated_at<?)"),
        ("responses", "responses_acked (acked_at<?)"),
        ("events", "events_by_age (created_at<?)"),
        ("events", "events_progress (created_at<?)"),
        ("intakes", "intakes_by_age (created_at<?)"),
    ],
)
def test_pruning_finds_what_is_old_by_its_age(table: str, index: str) -> None:
    recorder = Recorder()

    with connection.execute_wrapper(recorder):
        queue.prune(settings.TINYOFFICE.retention, now=NOW)

    steps = [step for sql, params in recorder.statements for step in plan(sql, params)]
    assert f"SEARCH {table} USING COVERING INDEX {index}" in steps
