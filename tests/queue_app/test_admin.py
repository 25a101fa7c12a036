from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from queue_app import clock, queue
from queue_app.admin.columns import Moment, age, shorten
from queue_app.admin.dead_letters import DeadLetter
from queue_app.holders import Holder
from queue_app.models import AgentMessage, Audit, Conversation, Message, Response, Run
from tests import factories
from tests.queue_app.admin_cast import (
    MODELS,
    SECRET,
    act,
    dead,
    fill,
    list_of,
    page_of,
    rows_of,
    said,
)

pytestmark = pytest.mark.django_db(transaction=True)

SHOWN = [
    "AgentMessage",
    "Audit",
    "ChatMessage",
    "Conversation",
    "DeadLetter",
    "Event",
    "Intake",
    "Job",
    "Lane",
    "Message",
    "Process",
    "Response",
    "Run",
]


def test_every_table_has_a_list_and_every_row_a_page(admin_client: Client, holder: Holder) -> None:
    fill(holder)

    assert [model.__name__ for model in MODELS] == SHOWN
    for model in MODELS:
        found = admin_client.get(list_of(model))
        assert found.status_code == 200, model
        assert found.context["cl"].result_count >= 1 or model is Conversation, model
        row = rows_of(model).first()
        assert admin_client.get(page_of(row)).status_code == 200, model


def test_nothing_is_added_changed_or_deleted(admin_client: Client, holder: Holder) -> None:
    fill(holder)
    before = list(Message.objects.order_by("id").values())

    for model in MODELS:
        row = rows_of(model).first()
        added = admin_client.post(reverse(f"admin:queue_app_{model._meta.model_name}_add"), {})
        changed = admin_client.post(page_of(row), {"status": "completed"})
        deleted = admin_client.post(page_of(row, "delete"), {"post": "yes"})
        assert [added.status_code, changed.status_code, deleted.status_code] == [403] * 3, model
        gone = act(admin_client, list_of(model), "delete_selected", [row.pk], post="yes")
        assert said(gone) in (["No action selected."], []), model

    assert list(Message.objects.order_by("id").values()) == before


def test_strangers_are_sent_to_the_login_and_staff_without_rights_refused(
    client: Client, holder: Holder
) -> None:
    letter = dead(holder)
    address = list_of(DeadLetter)
    assert client.get(address).url == f"/admin/login/?next={address}"  # type: ignore[attr-defined]

    client.force_login(User.objects.create_user("mallory"))
    assert client.get(address).status_code == 302
    clerk = User.objects.create_user("clerk", is_staff=True)
    client.force_login(clerk)
    assert client.get(address).status_code == 403

    clerk.user_permissions.add(Permission.objects.get(codename="view_deadletter"))
    assert client.get(address).status_code == 200
    act(client, address, "retry", [letter.pk])
    assert factories.row(letter.message_id).status == "dead"


def test_texts_are_shortened_in_lists_and_whole_and_masked_everywhere(
    admin_client: Client, holder: Holder
) -> None:
    letter = dead(holder, f"{SECRET} {'long ' * 100}the end", error=f"Bad key {SECRET}.")

    listed = admin_client.get(list_of(DeadLetter)).content.decode()
    shown = admin_client.get(page_of(DeadLetter.objects.get(pk=letter.pk))).content.decode()

    assert "sk-a•••" in listed
    assert "the end" not in listed
    assert "the end" in shown
    assert SECRET not in listed + shown
    assert Message.objects.get().message.startswith(SECRET)


def test_no_page_shows_a_secret(admin_client: Client, holder: Holder) -> None:
    fill(holder)

    for model in MODELS:
        pages = [list_of(model), *map(page_of, rows_of(model))]
        for page in pages:
            assert SECRET not in admin_client.get(page).content.decode(), page


def test_times_are_utc_with_their_age() -> None:
    assert age(1_000, 4_000) == "3 s ago"
    assert age(0, 2 * 86_400_000) == "2 d ago"
    assert age(600_000, 0) == "in 10 min"
    shown = Moment("created_at").show(1_800_000_000_000)
    assert ">2027-01-15 08:00:00 UTC</time>" in shown
    assert Moment("created_at").show(10**30) == str(10**30)
    assert len(shorten("word " * 50)) == 80


def test_a_run_shows_the_messages_it_was_given(admin_client: Client, holder: Holder) -> None:
    first, second = factories.enqueue("one"), factories.enqueue("two")
    claimed = factories.claim(holder)

    shown = admin_client.get(page_of(Run.objects.get(pk=claimed.run_id))).content.decode()

    assert shown.index(first.message_id) < shown.index(second.message_id)


def test_links_lead_from_row_to_row(admin_client: Client, holder: Holder) -> None:
    fill(holder)
    response, line = Response.objects.earliest("id"), AgentMessage.objects.earliest("id")

    by_message = admin_client.get(list_of(Message, message_id=response.message_id))
    by_talk = admin_client.get(list_of(AgentMessage, conversation_id=line.conversation_id))

    assert [row.message_id for row in by_message.context["cl"].result_list] == [response.message_id]
    assert line in by_talk.context["cl"].result_list
    assert admin_client.get(list_of(Message, message__contains="x")).status_code == 400


def test_conversations_are_open_ones_unless_others_are_asked_for(admin_client: Client) -> None:
    opened, closed = factories.enqueue("still on"), factories.enqueue("over")
    Conversation.objects.filter(pk=closed.conversation_id).update(state="closed")

    listed = {
        state: [row.pk for row in admin_client.get(address).context["cl"].result_list]
        for state, address in {
            "open": list_of(Conversation),
            "closed": list_of(Conversation, state="closed"),
            "all": list_of(Conversation, state="all"),
            "found": list_of(Conversation, state="all", q=closed.conversation_id),
        }.items()
    }

    assert listed["open"] == [opened.conversation_id]
    assert listed["closed"] == listed["found"] == [closed.conversation_id]
    assert set(listed["all"]) == {opened.conversation_id, closed.conversation_id}


def test_pending_messages_are_cancelled_after_asking(admin_client: Client, holder: Holder) -> None:
    taken, waiting = factories.enqueue(agent="writer"), factories.enqueue()
    rows = [factories.row(accepted.message_id).pk for accepted in (taken, waiting)]
    factories.claim(holder, "writer")

    asked = act(admin_client, list_of(Message), "cancel", rows)
    assert "Cancel <strong>2 messages</strong>?" in asked.content.decode()
    done = act(admin_client, list_of(Message), "cancel", rows, confirmed="yes")

    assert said(done) == ["1 cancelled, 1 was no longer pending."]
    assert factories.row(waiting.message_id).last_error == "Cancelled by admin."
    assert factories.row(taken.message_id).status == "processing"


def test_a_running_run_is_asked_to_stop(admin_client: Client, holder: Holder) -> None:
    now = clock.now()
    factories.enqueue(now=now)
    over = factories.claim(holder, now=now)
    assert queue.complete(over, factories.answer(over), now=now)
    factories.enqueue(now=now)
    running = factories.claim(holder, now=now)

    rows = [over.run_id, running.run_id]
    done = act(admin_client, list_of(Run), "stop", rows, confirmed="yes")
    assert said(done) == ["1 asked to stop, 1 was no longer going on."]

    assert Run.objects.get(pk=running.run_id).stop_by == "admin"
    assert Audit.objects.get().subject == f"run {running.run_id}"
    again = act(admin_client, list_of(Run), "stop", [over.run_id], select_across="1", confirmed="1")
    assert said(again) == ["0 asked to stop, 1 was no longer going on."]
