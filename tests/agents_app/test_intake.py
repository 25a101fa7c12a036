"""The one door in: routed, put in line, or refused without a trace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents_app import intake
from agents_app.intake import Inbound
from agents_app.routing import NobodyToAsk, UnknownAgent
from queue_app import queue
from queue_app.errors import BadInput, DuplicateMessage
from queue_app.models import AgentMessage, Conversation, Message, Response
from queue_app.values import Accepted
from tests import factories
from tests.agents_app import cast
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def _company() -> None:
    cast.open_company()


def inbound(text: str, **fields: Any) -> Inbound:
    given = {"channel": "web", "sender": "Alice", "source": "api"} | fields
    return Inbound(text=text, **given)


def submit(text: str, **fields: Any) -> Accepted:
    return intake.submit(inbound(text, **fields), now=NOW)


@pytest.mark.usefixtures("_company")
class TestSubmit:
    def test_the_agent_reads_its_text_and_history_keeps_what_was_written(self) -> None:
        accepted = submit(
            "@web: ship it",
            channel="telegram",
            sender_id="alice",
            thread="t7",
            files=["/a.png"],
            reach=["web"],
        )

        row = factories.row(accepted.message_id)
        assert (row.agent, row.team, row.message) == ("mia", "web", "ship it")
        assert (row.channel, row.sender, row.sender_id, row.thread) == (
            "telegram",
            "Alice",
            "alice",
            "t7",
        )
        assert row.files == '["/a.png"]'
        assert AgentMessage.objects.get().content == "@web: ship it"
        assert not Response.objects.exists()

    def test_several_agents_get_a_row_each_in_one_conversation(self) -> None:
        accepted = submit("Friday. [@otto: build] [@pia: test]", message_id="m-1")

        assert accepted.message_id == "m-1"
        assert [factories.row(one).agent for one in accepted.message_ids] == ["otto", "pia"]
        assert Conversation.objects.get().messages == 2

    def test_the_field_wins(self) -> None:
        assert factories.row(submit("@otto hi", agent="pia").message_id).agent == "pia"

    def test_a_repeat_is_told_what_is_stored(self) -> None:
        accepted = submit("[@ghost,otto: hi]", external_id="w-1")
        before = factories.tables()

        with pytest.raises(DuplicateMessage) as refused:
            submit("[@ghost,otto: hi]", external_id="w-1")

        assert refused.value.message_id == accepted.message_id
        assert factories.tables() == before

    def test_the_sender_hears_of_names_that_nobody_has(self) -> None:
        accepted = submit("[@ghost,otto: hi]", channel="telegram", sender_id="a", person="owner")

        note = Response.objects.get()
        assert "@ghost" in note.message
        assert (note.message_id, note.channel, note.sender_id, note.agent) == (
            accepted.message_id,
            "telegram",
            "a",
            None,
        )
        assert json.loads(note.metadata or "") == {"note": True}
        assert factories.events() == ["message_enqueued", "response_ready"]

    def test_without_the_note_nothing_is_accepted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = factories.tables()

        def break_down(*_: Any, **__: Any) -> None:
            raise OSError("the disk is full")

        monkeypatch.setattr(queue, "respond", break_down)
        with pytest.raises(OSError, match="full"):
            submit("[@ghost,otto: hi]")

        assert factories.tables() == before

    @pytest.mark.parametrize(
        ("fields", "error", "message"),
        [
            ({"text": ""}, BadInput, "'message' is empty"),
            ({"text": " \n"}, BadInput, "'message' is empty"),
            ({"text": "a\0b"}, BadInput, "NUL"),
            ({"text": "half \ud83d"}, BadInput, "surrogate"),
            ({"text": "ä" * 600_000}, BadInput, "1200000 bytes"),
            ({"text": f"{'s' * 1_048_560} [@otto: x]"}, BadInput, "bytes long"),
            ({"agent": "ghost"}, UnknownAgent, "known: mia, otto"),
            ({"agent": ""}, UnknownAgent, "known: mia, otto"),
            ({"channel": "two words"}, BadInput, "'channel'"),
            ({"channel": ""}, BadInput, "'channel'"),
            ({"sender": ""}, BadInput, "'sender' is empty"),
            ({"sender": "a\0"}, BadInput, "NUL"),
            ({"sender_id": "two words"}, BadInput, "'sender_id'"),
            ({"thread": ""}, BadInput, "'thread'"),
            ({"person": ""}, BadInput, "'person' is empty"),
            ({"files": [""]}, BadInput, "'files'"),
            ({"message_id": "x y"}, BadInput, "'message_id'"),
            ({"external_id": ""}, BadInput, "'external_id'"),
            ({"reach": ["ghost"]}, NobodyToAsk, "widen the sender's reach"),
            ({"text": "[@ghost: hi]", "sender": "x" * 300}, BadInput, "'sender'"),
        ],
    )
    def test_bad_input_leaves_nothing(
        self, fields: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        before = factories.tables()

        with pytest.raises(error, match=message):
            submit(**{"text": "hi"} | fields)

        assert factories.tables() == before

    @pytest.mark.parametrize(
        ("fields", "agent"),
        [
            ({"channel": "web"}, "otto"),
            ({"channel": "heartbeat", "sender": "System"}, "otto"),
            ({"channel": "schedule", "sender": "Scheduler"}, "otto"),
            ({"channel": "telegram", "sender_id": "bob"}, "mia"),
            ({"channel": "telegram", "sender_id": "bob", "reach": ["otto"]}, "otto"),
            ({"channel": "telegram", "sender_id": "al", "person": "owner"}, "otto"),
            ({"channel": "web", "person": "web:guest"}, "mia"),
        ],
    )
    def test_a_stranger_reaches_the_default_agent_and_the_owner_everybody(
        self, fields: dict[str, Any], agent: str
    ) -> None:
        assert factories.row(submit("@otto hi", **fields).message_id).agent == agent


def test_an_office_without_agents_accepts_nothing() -> None:
    with pytest.raises(NobodyToAsk):
        submit("hi")

    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("fields", "person"),
    [
        ({"channel": "web"}, "owner"),
        ({"channel": "api", "sender_id": "x"}, "owner"),
        ({"channel": "cli"}, "owner"),
        ({"channel": "telegram", "sender_id": "55512"}, "telegram:55512"),
        ({"channel": "telegram"}, "telegram:Alice"),
        ({"channel": "heartbeat", "sender": "System"}, "heartbeat:System"),
        ({"channel": "telegram", "person": "owner"}, "owner"),
    ],
)
def test_whose_message_it_is(fields: dict[str, Any], person: str) -> None:
    assert intake.person_of(inbound("hi", **fields)) == person


def test_long_addresses_stay_different_people() -> None:
    people = {
        intake.person_of(inbound("hi", channel="telegram", sender_id="x" * 199 + last))
        for last in "ab"
    }

    assert len(people) == 2
    assert all(len(person) <= 200 for person in people)
