from __future__ import annotations

import pytest
from django.conf import settings

from queue_app import queue
from queue_app.holders import Holder
from queue_app.models import (
    AgentMessage,
    Conversation,
    Event,
    Intake,
    Message,
    Pin,
    Response,
    Run,
    RunMessage,
)
from queue_app.queue.pruning import AT_ONCE, SHORTEST_PAUSE
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

RETENTION = settings.TINYOFFICE.retention
HOUR = 3_600_000
DAY = 24 * HOUR


def finished(holder: Holder, text: str = "hello", now: int = NOW) -> Message:
    """Return a message that was answered, and its answer acked, at this time."""
    accepted = factories.enqueue(text, now=now)
    claimed = factories.claim(holder, now=now)
    queue.complete(claimed, factories.answer(claimed), now=now)
    queue.ack(Response.objects.get(message_id=accepted.message_id).pk, now=now)
    return factories.row(accepted.message_id)


def prune(now: int) -> dict[str, int]:
    return {name: count for name, count in queue.prune(RETENTION, now=now).items() if count}


def test_what_is_finished_is_kept_for_a_day_and_not_longer(holder: Holder) -> None:
    finished(holder, "old")
    finished(holder, "new", now=NOW + 1)

    assert prune(NOW + DAY) == {}
    assert prune(NOW + DAY + 1) == {"messages": 1, "responses": 1, "events": 7}
    assert prune(NOW + DAY + 1) == {}

    assert Message.objects.get().message == "new"
    assert Response.objects.get().message_id == Message.objects.get().message_id


def test_the_record_of_what_was_done_outlives_the_messages(holder: Holder) -> None:
    row = finished(holder)

    prune(NOW + 29 * DAY)

    assert not Message.objects.exists()
    assert Run.objects.get().outcome == "completed"
    assert RunMessage.objects.get().message_id == row.message_id
    assert AgentMessage.objects.count() == 2
    assert Conversation.objects.get().messages == 1
    assert Intake.objects.get().message_id == row.message_id


def test_what_was_sent_is_remembered_for_thirty_days(holder: Holder) -> None:
    finished(holder)

    assert "intakes" not in prune(NOW + 30 * DAY)
    assert prune(NOW + 30 * DAY + 1) == {"intakes": 1}


def test_what_is_not_finished_is_never_pruned(holder: Holder) -> None:
    cancelled = factories.row(factories.enqueue("dead", "tester").message_id)
    queue.cancel(cancelled.pk, "owner", now=NOW)
    factories.enqueue("running", "writer")
    factories.claim(holder, "writer")
    factories.enqueue("waiting")
    channel = queue.hold("channel:telegram", holder, now=NOW)
    assert channel is not None
    sending, unknown, refused, _ = [
        queue.respond(factories.new_response(text), now=NOW) for text in "abcd"
    ]
    for response_id in (unknown, refused):
        queue.sending(response_id, channel)
    queue.undelivered(refused, channel, "no", permanent=True, now=NOW)
    queue.give_back(channel, now=NOW)
    channel = queue.hold("channel:telegram", holder, now=NOW)
    assert channel is not None
    queue.sending(sending, channel)

    prune(NOW + 365 * DAY)

    assert set(Message.objects.values_list("status", flat=True)) == {
        "dead",
        "processing",
        "pending",
    }
    statuses = sorted(Response.objects.values_list("status", flat=True))
    assert statuses == ["dead", "pending", "pending", "sending", "unknown"]


def test_pinned_rows_stay_until_their_time(holder: Holder) -> None:
    pinned = [finished(holder, "a"), finished(holder, "b")]
    finished(holder, "c")
    for row in pinned:
        Pin.objects.create(table="messages", row_id=row.pk, until=NOW + 3 * DAY)
    response = Response.objects.get(message_id=pinned[0].message_id)
    Pin.objects.create(table="responses", row_id=response.pk, until=NOW + 3 * DAY)

    prune(NOW + 2 * DAY)

    assert {row.message for row in Message.objects.all()} == {"a", "b"}
    assert Response.objects.get() == response
    assert Pin.objects.count() == 3

    prune(NOW + 3 * DAY + 1)

    assert not Message.objects.exists()
    assert not Response.objects.exists()
    assert not Pin.objects.exists()


def test_a_pin_of_one_table_holds_nothing_in_another(holder: Holder) -> None:
    row = finished(holder)
    Pin.objects.create(table="events", row_id=row.pk, until=NOW + 3 * DAY)

    prune(NOW + 2 * DAY)

    assert not Message.objects.exists()


def test_progress_is_kept_for_an_hour_and_other_events_for_a_day() -> None:
    for kind in ("agent_progress", "message_enqueued"):
        Event.objects.create(type=kind, created_at=NOW, data="{}")

    assert prune(NOW + HOUR) == {}
    assert prune(NOW + HOUR + 1) == {"progress": 1}
    assert Event.objects.get().type == "message_enqueued"
    assert prune(NOW + DAY + 1) == {"events": 1}


def test_a_pinned_event_stays_whatever_its_kind() -> None:
    for kind in ("agent_progress", "message_enqueued"):
        row = Event.objects.create(type=kind, created_at=NOW, data="{}")
        Pin.objects.create(table="events", row_id=row.pk, until=NOW + 3 * DAY)

    assert prune(NOW + 2 * DAY) == {}
    assert prune(NOW + 3 * DAY + 1) == {"events": 2}


def test_many_rows_are_deleted_in_batches_with_a_pause_after_each() -> None:
    Event.objects.bulk_create(
        Event(type="message_enqueued", created_at=NOW, data="{}") for _ in range(2 * AT_ONCE + 1)
    )
    left: list[int] = []
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        left.append(Event.objects.count())

    queue.prune(RETENTION, now=NOW + 2 * DAY, pause=pause)

    assert left == [AT_ONCE + 1, 1]
    assert all(seconds >= SHORTEST_PAUSE for seconds in pauses)
    assert not Event.objects.exists()


def test_a_thousand_pinned_rows_do_not_keep_the_others() -> None:
    Event.objects.bulk_create(
        Event(type="message_enqueued", created_at=NOW, data="{}") for _ in range(AT_ONCE + 5)
    )
    kept = list(Event.objects.order_by("id").values_list("pk", flat=True)[:AT_ONCE])
    Pin.objects.bulk_create(
        Pin(table="events", row_id=row_id, until=NOW + 9 * DAY) for row_id in kept
    )

    assert prune(NOW + 2 * DAY) == {"events": 5}
    assert Event.objects.count() == AT_ONCE
