"""Agents that would talk for ever come to rest, visibly; a conversation can be told afterwards."""

from __future__ import annotations

import pytest
from django.conf import settings

from agents_app import rooms
from agents_app.rooms import RoomMessage
from queue_app import clock, queue, traces
from queue_app.models import ChatMessage, Conversation, Event, Message, Response
from tests.agents_app import office

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

DAY = 24 * 3_600_000


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("go on", "wrote each other 6 short messages in a row"),
        ("go on " * 50, "the conversation has reached its limit"),
    ],
    ids=["nodding", "long texts"],
)
def test_two_agents_told_to_answer_each_other_for_ever_stop_visibly(said: str, note: str) -> None:
    office.hire("mia", answer=f"[@otto: {said}]")
    office.hire("otto", answer=f"[@mia: {said}]")
    office.team_up("web", "mia", "otto")
    root = office.send("begin", "web")

    with office.processor() as processor:
        processor.wait_until(office.settled)

    assert Event.objects.filter(type="loop_stopped").count() == 1
    conversation = Conversation.objects.get()
    assert conversation.open == 0
    assert Message.objects.count() <= settings.TINYOFFICE.queue.max_conversation_messages
    last = Response.objects.filter(conversation_id=root.conversation_id).latest("id")
    assert note in last.message
    assert [one.pk for one in Response.objects.filter(message__contains=note)] == [last.pk]


def test_eight_members_of_a_room_told_to_answer_everything_come_to_rest() -> None:
    members = [f"m{number}" for number in range(8)]
    for member in members:
        office.hire(member, answer="[#all: me too]")
    office.team_up("all", *members)
    rooms.post(RoomMessage(team="all", text="hello", sender="Alice", person="owner", source="api"))

    with office.processor() as processor:
        processor.wait_until(office.settled)

    assert not Message.objects.exclude(status="completed").exists()
    assert Conversation.objects.get().open == 0
    assert Event.objects.filter(type="loop_stopped").exists()
    assert ChatMessage.objects.filter(message__contains="The room rests").exists()
    woke = [post for post in Event.objects.filter(type="room_post") if '"delivered":7' in post.data]
    assert len(woke) == rooms.POSTS_PER_MEMBER * len(members)


def test_a_conversation_is_told_whole_after_its_messages_are_pruned() -> None:
    office.hire("mia", answer="On it. [@otto: build it]")
    office.hire("otto", crash=True, until_attempt=1, answer="Built.")
    office.team_up("web", "mia", "otto")
    root = office.send("make a page", "web")
    with office.processor() as processor:
        processor.wait_until(office.settled)
    before = traces.trace(root.conversation_id)

    queue.prune(settings.TINYOFFICE.retention, now=clock.now() + 2 * DAY)

    assert not Message.objects.exists()
    after = traces.trace(root.conversation_id)
    assert after == before
    assert after is not None
    asked, handed_on = after.steps
    assert (asked.agent, asked.sender, asked.state) == ("mia", "Alice", "completed")
    assert asked.answer == "On it. [@otto: build it]"
    assert (handed_on.agent, handed_on.sender, handed_on.hop) == ("otto", "mia", 1)
    assert handed_on.parent_id == asked.message_id
    assert [one.outcome for one in handed_on.attempts] == ["failed", "completed"]
    assert (handed_on.attempts[0].error_class, handed_on.answer) == ("crash", "Built.")
