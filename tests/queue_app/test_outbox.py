from __future__ import annotations

import json

import pytest

from queue_app import queue
from queue_app.holders import Holder
from queue_app.models import Event, Response
from queue_app.queue.outbox import UNSERVED
from queue_app.values import Claim
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "channel:telegram"
KEY = "sk-abcdefghijklmnopqrstuvwxyz"


def channel(holder: Holder) -> Claim:
    held = queue.hold(LANE, holder, now=NOW)
    assert held is not None
    return held


def respond() -> Response:
    return Response.objects.get(pk=queue.respond(factories.new_response(), now=NOW))


def under_way(held: Claim) -> Response:
    """Return a response that this holder of the channel is sending."""
    response = respond()
    assert queue.sending(response.pk, held)
    return response


def test_an_answer_without_a_run_waits_for_its_channel_and_is_told() -> None:
    new = factories.new_response(
        "look", files=["a.txt"], metadata="{}", thread="7", agent="coder", conversation_id="c_1"
    )

    row_id = queue.respond(new, now=NOW)

    row = Response.objects.get()
    assert (row.pk, row.status, row.message, row.original_message) == (
        row_id,
        "pending",
        "look",
        "hello",
    )
    assert (row.channel, row.sender, row.sender_id, row.thread) == (
        "telegram",
        "Alice",
        "alice",
        "7",
    )
    assert (row.files, row.metadata) == ('["a.txt"]', "{}")
    assert (row.retry_count, row.parts_sent, row.acked_at, row.run_id) == (0, 0, None, None)
    assert (row.created_at, row.available_at) == (NOW, NOW)
    event = Event.objects.get()
    assert (event.type, event.agent, event.conversation_id) == ("response_ready", "coder", "c_1")
    assert json.loads(event.data) == {
        "responseId": row_id,
        "messageId": "telegram_1",
        "channel": "telegram",
        "sender": "Alice",
        "message": "look",
    }


def test_a_response_is_sent_by_one_holder_of_the_channel(holder: Holder) -> None:
    held = channel(holder)
    response = respond()

    assert queue.sending(response.pk, held)
    assert not queue.sending(response.pk, held)

    response.refresh_from_db()
    assert (response.status, response.run_id) == ("sending", held.run_id)


def test_a_holder_that_lost_the_channel_sends_nothing(holder: Holder) -> None:
    stale = channel(holder)
    queue.lose(LANE, stale.run_id, now=NOW)
    response = respond()
    before = factories.tables()

    assert not queue.sending(response.pk, stale)
    channel(holder)
    assert not queue.sending(response.pk, stale)

    assert factories.tables()["responses"] == before["responses"]


def test_a_delivered_response_is_acked_once(holder: Holder) -> None:
    response = under_way(channel(holder))

    assert queue.ack(response.pk, now=NOW + 5)
    assert not queue.ack(response.pk, now=NOW + 9)

    response.refresh_from_db()
    assert (response.status, response.acked_at, response.run_id) == ("acked", NOW + 5, None)
    assert factories.events() == ["response_ready", "response_acked"]
    assert json.loads(Event.objects.latest("id").data) == {
        "responseId": response.pk,
        "messageId": "telegram_1",
        "channel": "telegram",
    }


def test_a_client_may_ack_what_nobody_sends() -> None:
    response = respond()

    assert queue.ack(response.pk, now=NOW)

    response.refresh_from_db()
    assert response.status == "acked"


def test_a_response_that_cannot_be_delivered_now_is_tried_later_and_later(holder: Holder) -> None:
    held = channel(holder)
    response = respond()
    waits = []

    for _ in range(5):
        assert queue.sending(response.pk, held)
        assert queue.undelivered(response.pk, held, "503 from Telegram", permanent=False, now=NOW)
        response.refresh_from_db()
        waits.append(response.available_at - NOW)

    assert (response.status, response.retry_count) == ("dead", 5)
    assert (response.last_error, response.run_id) == ("503 from Telegram", None)
    for wait, middle in zip(waits[:4], (1_000, 5_000, 30_000, 120_000), strict=True):
        assert 0.8 * middle <= wait <= 1.2 * middle
    told = Event.objects.filter(type="response_failed").order_by("id")
    assert [json.loads(event.data)["dead"] for event in told] == [False] * 4 + [True]


def test_a_response_that_is_refused_for_good_is_dead_at_once(holder: Holder) -> None:
    held = channel(holder)
    response = under_way(held)

    assert queue.undelivered(response.pk, held, f"blocked, {KEY}", permanent=True, now=NOW)

    response.refresh_from_db()
    assert (response.status, response.retry_count) == ("dead", 1)
    assert response.last_error == "blocked, sk-a•••"
    assert json.loads(Event.objects.latest("id").data) == {
        "responseId": response.pk,
        "messageId": "telegram_1",
        "error": "blocked, sk-a•••",
        "dead": True,
    }
    assert not queue.sending(response.pk, held)
    assert not queue.ack(response.pk, now=NOW)


def test_only_who_sends_a_response_can_say_it_failed(holder: Holder) -> None:
    held = channel(holder)
    waiting, sent = respond(), under_way(held)
    other = Claim(lane=LANE, run_id=held.run_id + 1, started=NOW)
    before = factories.tables()

    assert not queue.undelivered(waiting.pk, held, "no", permanent=True, now=NOW)
    assert not queue.undelivered(sent.pk, other, "no", permanent=True, now=NOW)

    assert factories.tables() == before


@pytest.mark.parametrize("end", ["lose", "give_back", "fail"])
def test_what_was_being_sent_when_its_channel_ended_is_doubtful(end: str, holder: Holder) -> None:
    held = channel(holder)
    waiting, sent = respond(), under_way(held)

    ends = {
        "lose": lambda: queue.lose(LANE, held.run_id, now=NOW),
        "give_back": lambda: queue.give_back(held, now=NOW),
        "fail": lambda: queue.fail(held, factories.fault(), now=NOW),
    }
    assert ends[end]()

    waiting.refresh_from_db()
    sent.refresh_from_db()
    assert waiting.status == "pending"
    assert (sent.status, sent.run_id) == ("unknown", None)
    assert sent.last_error == "The channel ended while it was sending; it may have arrived."
    assert factories.events()[-1] == "response_failed"
    assert not queue.ack(sent.pk, now=NOW)


def test_the_end_of_one_channel_leaves_what_another_sends(holder: Holder) -> None:
    other = queue.hold("channel:discord", holder, now=NOW)
    assert other is not None
    response = under_way(channel(holder))

    assert queue.give_back(other, now=NOW)

    response.refresh_from_db()
    assert response.status == "sending"


def test_answers_on_channels_that_nobody_serves_are_acked_after_a_while() -> None:
    for name in sorted(UNSERVED):
        queue.respond(factories.new_response(channel=name), now=NOW)
    queue.respond(factories.new_response(channel="web"), now=NOW + 1)
    queue.respond(factories.new_response(channel="telegram"), now=NOW)

    assert queue.ack_unserved(NOW + 1, now=NOW + 5) == len(UNSERVED)
    assert queue.ack_unserved(NOW + 1, now=NOW + 9) == 0

    acked = Response.objects.filter(status="acked", acked_at=NOW + 5)
    assert set(acked.values_list("channel", flat=True)) == UNSERVED
    left = Response.objects.pending().order_by("id").values_list("channel", flat=True)
    assert list(left) == ["web", "telegram"]
