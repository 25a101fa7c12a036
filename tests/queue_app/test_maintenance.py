from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django_q.models import Schedule

from queue_app import holders, maintenance, queue
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import Conversation, Event, Lane, Message, Response, Run
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "agent:coder"
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.fixture(autouse=True)
def only_locks_of_the_living() -> None:
    holders.sweep(settings.TINYOFFICE.home)


def swept(now: int) -> dict[str, int]:
    """Sweep once; return what was done, without what was not."""
    return {name: count for name, count in maintenance.sweep(now).items() if count}


def orphaned(holder: Holder, *texts: str, now: int = NOW) -> int:
    """Leave messages in processing under a run that no lane holds any more; return the run."""
    for text in texts:
        factories.enqueue(text, now=now)
    claimed = factories.claim(holder, now=now)
    Lane.objects.filter(name=LANE).update(run_id=None, holder=None)
    return claimed.run_id


def test_an_office_in_order_is_left_as_it_is(holder: Holder) -> None:
    factories.enqueue("waiting")
    factories.enqueue("running", "writer")
    factories.claim(holder, "writer")
    queue.respond(factories.new_response(), now=NOW)
    before = factories.tables()

    assert swept(NOW + MINUTE) == {}

    assert factories.tables() == before


def test_a_second_sweep_finds_nothing_to_do(holder: Holder) -> None:
    orphaned(holder, "a")
    queue.respond(factories.new_response(channel="web"), now=NOW)
    factories.enqueue("done", "writer")
    claimed = factories.claim(holder, "writer")
    queue.complete(claimed, factories.answer(claimed), now=NOW)

    assert swept(NOW + 2 * DAY)
    before = factories.tables()
    assert swept(NOW + 2 * DAY) == {}

    assert factories.tables() == before


def test_messages_of_a_run_without_a_lane_are_recovered_after_ten_minutes(holder: Holder) -> None:
    run_id = orphaned(holder, "a", "b")

    assert swept(NOW + 10 * MINUTE) == {}
    assert swept(NOW + 10 * MINUTE + 1) == {"recovered": 2}

    assert set(Message.objects.values_list("status", "retry_count", "run_id", "error_class")) == {
        ("pending", 1, None, "lost")
    }
    assert factories.events()[-2:] == ["message_failed", "message_failed"]
    run = Run.objects.get(pk=run_id)
    assert (run.outcome, run.finished) == ("lost", NOW + 10 * MINUTE + 1)
    assert factories.claim(holder, now=NOW + HOUR).primary.message == "a"


def test_a_message_recovered_for_the_fifth_time_is_dead(holder: Holder) -> None:
    accepted = factories.enqueue()
    at = NOW
    for _ in range(5):
        factories.claim(holder, now=at)
        Lane.objects.update(run_id=None, holder=None)
        at += HOUR
        assert maintenance.sweep(at)["recovered"] == 1

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count) == ("dead", 5)
    assert Response.objects.filter(message__contains="could not answer").count() == 1
    assert Conversation.objects.get().open == 0


def test_a_long_run_that_still_holds_its_lane_is_not_recovered(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)

    assert "recovered" not in swept(NOW + 12 * HOUR)

    assert queue.complete(claimed, factories.answer(claimed), now=NOW + 12 * HOUR)


def test_a_recovered_run_cannot_be_completed_by_its_late_holder(holder: Holder) -> None:
    factories.enqueue()
    late = factories.claim(holder)
    Lane.objects.update(run_id=None, holder=None)
    swept(NOW + HOUR)
    before = factories.tables()

    assert queue.complete(late, factories.answer(late), now=NOW + HOUR) is False

    assert factories.tables() == before


@pytest.mark.concurrency
def test_two_sweeps_at_once_bury_a_message_once(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    for _ in range(4):
        queue.lose(LANE, claimed.run_id, now=NOW)
        claimed = factories.claim(holder, now=NOW + HOUR)
    Lane.objects.update(run_id=None, holder=None)
    both_have_read = threading.Barrier(2)

    def met(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "WHERE status = 'processing' AND run_id = " in sql and "SELECT" in sql:
            with suppress(threading.BrokenBarrierError):
                both_have_read.wait(0.3)
        return result

    def recover(_: int) -> int:
        try:
            with connection.execute_wrapper(met):
                return queue.recover_stale(now=NOW + 2 * HOUR)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(recover, range(2))) == [0, 1]

    assert Message.objects.get().status == "dead"
    assert Response.objects.count() == 1
    assert Conversation.objects.get().open == 0


def block(holder: Holder, at: int) -> None:
    claimed = factories.claim(holder, now=at)
    queue.fail(claimed, factories.fault(ErrorClass.AUTH, "No key."), now=at)


def test_what_waited_a_day_for_a_blocked_agent_is_dead_with_that_reason(holder: Holder) -> None:
    early = factories.enqueue("early")
    late = factories.enqueue("late", now=NOW + HOUR)
    block(holder, NOW + DAY)

    assert swept(NOW + DAY).get("expired") is None
    assert swept(NOW + DAY + 1)["expired"] == 1

    row = factories.row(early.message_id)
    assert (row.status, row.error_class, row.retry_count) == ("dead", "expired", 0)
    assert row.last_error == "Waited too long for a blocked agent (auth: No key.)."
    assert factories.row(late.message_id).status == "pending"
    notice = Response.objects.get()
    assert notice.message_id == early.message_id
    assert "Waited too long for a blocked agent (auth: No key.)." in notice.message
    assert factories.events()[-2:] == ["response_ready", "message_dead"]
    assert Conversation.objects.get(pk=early.conversation_id).open == 0


def test_a_paused_or_busy_agents_messages_do_not_expire(holder: Holder) -> None:
    factories.enqueue("a", "paused")
    queue.pause("paused", "owner", now=NOW)
    factories.enqueue("b")
    factories.claim(holder)
    factories.enqueue("c")

    assert swept(NOW + 3 * DAY).get("expired") is None

    assert Message.objects.pending().count() == 2


def test_messages_for_an_agent_whose_block_is_over_are_tried_before_they_expire(
    holder: Holder,
) -> None:
    factories.enqueue()
    block(holder, NOW)

    # The office was off for two days; the block ended after its first minute.
    assert swept(NOW + 2 * DAY).get("expired") is None

    assert factories.claim(holder, now=NOW + 2 * DAY).primary.message == "hello"


def test_answers_that_nobody_serves_are_acked_after_an_hour(holder: Holder) -> None:
    for channel in ("web", "api", "telegram"):
        queue.respond(factories.new_response(channel=channel), now=NOW)

    assert swept(NOW + HOUR) == {}
    assert swept(NOW + HOUR + 1) == {"acked": 2}

    assert Response.objects.pending().get().channel == "telegram"


def test_a_conversation_is_closed_when_nothing_waits_and_nothing_happened_for_half_an_hour(
    holder: Holder,
) -> None:
    factories.enqueue("a", "writer")
    claimed = factories.claim(holder, "writer")
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    waiting = factories.enqueue("b").conversation_id

    assert swept(NOW + 30 * MINUTE) == {}
    assert swept(NOW + 30 * MINUTE + 1) == {"closed": 1}

    assert Conversation.objects.get(state="open").pk == waiting


def test_lock_files_of_holders_that_ended_are_removed(holder: Holder) -> None:
    home = settings.TINYOFFICE.home
    ended = holders.become("processor", home)
    ended.release()

    assert swept(NOW) == {"locks": 1}

    assert not holders.is_gone(holder.name, home)
    assert holders.is_gone(ended.name, home)


def test_one_sweep_does_all_of_it(holder: Holder) -> None:
    orphaned(holder, "a")
    factories.enqueue("b", "writer")
    claimed = factories.claim(holder, "writer")
    queue.complete(claimed, factories.answer(claimed), now=NOW)

    done: dict[str, Any] = maintenance.sweep(NOW + 40 * DAY)

    assert done["recovered"] == done["acked"] == done["closed"] == 1
    assert (done["pruned messages"], done["pruned intakes"]) == (1, 2)
    assert Event.objects.filter(created_at__lt=NOW + DAY).count() == 0


def test_the_command_sweeps_once(holder: Holder, capsys: pytest.CaptureFixture[str]) -> None:
    orphaned(holder, "a", now=1)

    call_command("maintain")

    assert Message.objects.get().status == "pending"
    assert "recovered  1\n" in capsys.readouterr().out


def test_the_clock_has_one_entry_for_maintenance_however_often_it_is_migrated() -> None:
    call_command("migrate", verbosity=0)
    due = Schedule.objects.get(name="maintenance").next_run
    call_command("migrate", verbosity=0)

    entry = Schedule.objects.get(name="maintenance")
    assert (entry.func, entry.minutes, entry.repeats) == ("queue_app.maintenance.sweep", 1, -1)
    assert entry.schedule_type == Schedule.MINUTES
    assert entry.next_run == due
    json.dumps(maintenance.sweep(NOW))  # what it returns is stored by the clock
