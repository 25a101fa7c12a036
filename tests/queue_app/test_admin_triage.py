from __future__ import annotations

import pytest
from django.test import Client

from queue_app import clock, queue
from queue_app.admin.acts import AT_ONCE
from queue_app.admin.dead_letters import DeadLetter
from queue_app.holders import Holder
from queue_app.models import Audit, Message
from tests import factories
from tests.queue_app.admin_cast import act, cancelled, dead, list_of, said

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3_600_000


def found(client: Client, **query: str) -> list[str]:
    rows = client.get(list_of(DeadLetter, **query)).context["cl"].result_list
    return [row.message_id for row in rows]


def test_retry_moves_reports_and_audits(admin_client: Client, holder: Holder) -> None:
    letters = [dead(holder, text).pk for text in ("one", "two", "three")]

    done = act(admin_client, list_of(DeadLetter), "retry", letters)

    assert said(done) == ["3 retried."]
    assert Message.objects.pending().count() == 3
    audited = Audit.objects.order_by("id").values_list("actor", "action", "subject")
    assert list(audited) == [("admin", "retry", f"message {row}") for row in letters]


def test_what_somebody_else_retried_or_discarded_is_reported(
    admin_client: Client, holder: Holder
) -> None:
    letters = [dead(holder, text).pk for text in ("one", "two", "three")]
    queue.retry_dead(letters[0], "alice")
    assert said(act(admin_client, list_of(DeadLetter), "retry", letters[:2])) == [
        "1 retried, 1 was no longer dead."
    ]

    queue.discard_dead(letters[2], "alice")

    assert said(act(admin_client, list_of(DeadLetter), "retry", letters)) == [
        "0 retried, 3 were no longer dead."
    ]


def test_discard_asks_and_says_how_many_before_it_deletes(
    admin_client: Client, holder: Holder
) -> None:
    letters = [dead(holder, text).pk for text in ("one", "two")]

    asked = act(admin_client, list_of(DeadLetter), "discard", letters)

    question = asked.content.decode()
    assert "Discard <strong>2 dead letters</strong>?" in question
    assert "only the audit will keep them" in question
    assert Message.objects.dead().count() == 2

    done = act(admin_client, list_of(DeadLetter), "discard", letters, confirmed="yes")

    assert said(done) == ["2 discarded."]
    assert not Message.objects.exists()
    assert "one" in str(Audit.objects.earliest("id").detail)


def test_what_died_after_the_question_is_not_discarded(
    admin_client: Client, holder: Holder
) -> None:
    old = dead(holder, "old", now=factories.NOW)
    every = {"rows": [old.pk], "select_across": "1"}

    asked = act(admin_client, list_of(DeadLetter), "discard", **every)
    new = dead(holder, "new", now=factories.NOW + 1)
    until = asked.context["selection"].until
    done = act(admin_client, list_of(DeadLetter), "discard", **every, until=until, confirmed="yes")

    assert asked.context["count"] == 1
    assert said(done) == ["1 discarded."]
    assert list(Message.objects.values_list("pk", flat=True)) == [new.pk]


def test_all_pages_are_moved_when_all_are_selected(admin_client: Client) -> None:
    letters = cancelled(AT_ONCE + 20)

    done = act(admin_client, list_of(DeadLetter), "retry", letters[:1], select_across="1")

    assert said(done) == [f"{len(letters)} retried."]
    assert not Message.objects.dead().exists()


def test_all_selected_means_all_of_the_filtered_list(admin_client: Client, holder: Holder) -> None:
    mine, other = dead(holder, agent="coder"), dead(holder, agent="writer")

    address = list_of(DeadLetter, agent="coder")
    done = act(admin_client, address, "retry", [mine.pk], select_across="1")

    assert said(done) == ["1 retried."]
    assert factories.row(other.message_id).status == "dead"


def test_dead_letters_are_found_by_agent_channel_error_class_and_age(
    admin_client: Client, holder: Holder
) -> None:
    now = clock.now()
    ages = {"minute": now - 60_000, "hours": now - 5 * HOUR, "days": now - 72 * HOUR}
    letters = {
        name: dead(holder, name, now=at, channel=f"c-{name}", agent=f"a-{name}").message_id
        for name, at in ages.items()
    }
    letters["weeks"] = factories.enqueue("weeks", now=now - 400 * HOUR).message_id
    queue.cancel(factories.row(letters["weeks"]).pk, "alice", now=now - 400 * HOUR)
    minute, hours, days, weeks = letters.values()

    assert found(admin_client) == [minute, hours, days, weeks]
    assert found(admin_client, agent="a-days") == [days]
    assert found(admin_client, channel="c-hours") == [hours]
    assert found(admin_client, error_class="cancelled") == [weeks]
    assert found(admin_client, error_class="refused", agent="a-minute") == [minute]
    assert found(admin_client, age="1h") == [minute]
    assert found(admin_client, age="24h") == [minute, hours]
    assert found(admin_client, age="7d") == [minute, hours, days]
    assert found(admin_client, age="older") == [weeks]


def test_dead_letters_are_found_by_text_id_and_sender(admin_client: Client, holder: Holder) -> None:
    first = dead(holder, "deploy 100% of it", message_id="first", sender="Alice")
    dead(holder, "deploy 100 of it", message_id="second", sender="Bob")

    assert found(admin_client, q="100%") == [first.message_id]
    assert found(admin_client, q="SECOND") == ["second"]
    assert found(admin_client, q="bob") == ["second"]
    assert found(admin_client, q="nobody") == []
