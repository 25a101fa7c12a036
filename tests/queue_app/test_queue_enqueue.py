from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection

from queue_app import ids, queue
from queue_app.errors import DuplicateMessage
from queue_app.holders import Holder
from queue_app.models import AgentMessage, Conversation, Event, Intake, Lane, Message
from queue_app.values import Accepted, Submission
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 3_600_000
KEY = "sk-abcdefghijklmnopqrstuvwxyz"


def fan_out(*agents: str, **keys: Any) -> Submission:
    messages = [factories.new_message("hello", agent, team="dev") for agent in agents]
    return Submission(source="api", messages=messages, **keys)


def fail_at(statement: str) -> Callable[..., Any]:
    """Return a wrapper that breaks the connection's first statement with these words."""

    def broken(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if statement in sql:
            raise OperationalError("disk I/O error")
        return execute(sql, *rest)

    return broken


def draws(monkeypatch: pytest.MonkeyPatch, *drawn: str) -> None:
    following = iter(drawn)
    monkeypatch.setattr(ids, "new_id", lambda prefix: next(following))


def test_a_fan_out_makes_a_row_for_each_agent_in_one_conversation() -> None:
    accepted = queue.enqueue(fan_out("coder", "writer", "tester"), now=NOW)

    rows = Message.objects.order_by("id")
    assert [row.agent for row in rows] == ["coder", "writer", "tester"]
    assert tuple(row.message_id for row in rows) == accepted.message_ids
    assert {row.conversation_id for row in rows} == {accepted.message_id}
    assert {(row.status, row.hop, row.parent_id, row.team) for row in rows} == {
        ("pending", 0, None, "dev")
    }
    conversation = Conversation.objects.get()
    assert (conversation.pk, conversation.messages, conversation.open, conversation.team) == (
        accepted.conversation_id,
        3,
        3,
        "dev",
    )
    assert (conversation.state, conversation.last_at) == ("open", NOW)
    assert set(Lane.objects.values_list("name", flat=True)) == {
        "agent:coder",
        "agent:writer",
        "agent:tester",
    }


def test_all_columns_of_a_message_are_kept() -> None:
    accepted = factories.enqueue(
        "look",
        channel="telegram",
        sender="Bob",
        sender_id="42",
        person="bob",
        files=["a b.txt", "ü.png"],
        team="dev",
        thread="7",
        from_agent="writer",
        available_at=NOW + 2_000,
        hop=3,
    )

    row = factories.row(accepted.message_id)
    assert accepted.message_id.startswith("telegram_")
    assert (row.channel, row.sender, row.sender_id, row.person) == ("telegram", "Bob", "42", "bob")
    assert json.loads(row.files or "") == ["a b.txt", "ü.png"]
    assert (row.team, row.thread, row.from_agent, row.hop) == ("dev", "7", "writer", 3)
    assert (row.available_at, row.created_at, row.updated_at) == (NOW + 2_000, NOW, NOW)
    assert (row.retry_count, row.manual_retries, row.run_id, row.last_error) == (0, 0, None, None)


def test_the_clients_message_id_becomes_the_first_rows_id_and_the_conversations() -> None:
    accepted = queue.enqueue(fan_out("coder", "writer", message_id="my-id/1"), now=NOW)

    assert accepted.message_ids[0] == accepted.conversation_id == "my-id/1"
    assert factories.row("my-id/1").agent == "coder"
    assert accepted.message_ids[1].startswith("api_")
    intake = Intake.objects.get()
    assert (intake.source, intake.external_id, intake.message_id, intake.conversation_id) == (
        "api",
        "my-id/1",
        "my-id/1",
        "my-id/1",
    )


def test_a_platforms_id_is_the_key_but_not_the_message_id() -> None:
    accepted = factories.enqueue(external_id="bot:chat:17", channel="telegram")

    intake = Intake.objects.get()
    assert intake.external_id == "bot:chat:17"
    assert intake.message_id == accepted.message_id != "bot:chat:17"


@pytest.mark.parametrize("key", ["message_id", "external_id"])
def test_a_repeat_is_refused_with_the_stored_id_and_writes_nothing(key: str) -> None:
    first = factories.enqueue(**{key: "again"})
    before = factories.tables()

    with pytest.raises(DuplicateMessage) as refused:
        factories.enqueue("another text", "writer", **{key: "again"})

    assert refused.value.message_id == first.message_id
    assert str(refused.value) == (
        f"'again' was accepted before, as message '{first.message_id}'. "
        "It is not run twice; send it under a new id if you mean a new message."
    )
    assert factories.tables() == before


def test_the_same_external_id_from_another_source_is_another_thing() -> None:
    first = factories.enqueue(external_id="17", source="telegram")
    second = factories.enqueue(external_id="17", source="discord")

    assert first.message_id != second.message_id
    assert Message.objects.count() == Intake.objects.count() == 2


def test_a_message_id_that_is_in_use_is_refused_from_any_source() -> None:
    factories.enqueue(message_id="mine", source="web")
    before = factories.tables()

    with pytest.raises(DuplicateMessage, match="'mine' was accepted before, as message 'mine'"):
        factories.enqueue(message_id="mine", source="api")

    assert factories.tables() == before


def test_a_message_id_of_a_second_addressee_is_in_use_too() -> None:
    accepted = queue.enqueue(fan_out("coder", "writer"), now=NOW)
    before = factories.tables()

    with pytest.raises(DuplicateMessage, match=accepted.message_ids[1]):
        factories.enqueue(message_id=accepted.message_ids[1])

    assert factories.tables() == before


def test_a_repeat_is_still_refused_after_the_message_was_completed_and_pruned(
    holder: Holder,
) -> None:
    factories.enqueue(message_id="once")
    claimed = factories.claim(holder)
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    queue.prune(settings.TINYOFFICE.retention, now=NOW + 2 * DAY)
    assert not Message.objects.exists()

    with pytest.raises(DuplicateMessage, match="as message 'once'"):
        factories.enqueue(message_id="once", now=NOW + 2 * DAY)

    assert not Message.objects.exists()


def test_an_id_is_not_used_again_while_its_conversation_is_kept(holder: Holder) -> None:
    factories.enqueue(message_id="once")
    claimed = factories.claim(holder)
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    queue.prune(settings.TINYOFFICE.retention, now=NOW + 31 * DAY)
    assert not Intake.objects.exists()
    before = factories.tables()

    with pytest.raises(DuplicateMessage, match="as message 'once'"):
        factories.enqueue(message_id="once", now=NOW + 31 * DAY)

    assert factories.tables() == before


def test_a_drawn_id_that_is_taken_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draws(monkeypatch, "api_taken000")
    factories.enqueue("first")
    draws(monkeypatch, "api_taken000", "api_taken000", "api_free0000")

    accepted = factories.enqueue("second")

    assert accepted.message_id == "api_free0000"
    assert factories.row("api_taken000").message == "first"
    assert Intake.objects.count() == Conversation.objects.count() == Message.objects.count() == 2
    assert AgentMessage.objects.count() == Event.objects.count() == 2


def test_a_drawn_id_of_a_further_addressee_that_is_taken_is_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws(monkeypatch, "api_taken000")
    factories.enqueue("first")
    draws(monkeypatch, "api_root0000", "api_taken000", "api_root0000", "api_second00")

    accepted = queue.enqueue(fan_out("coder", "writer"), now=NOW)

    assert accepted.message_ids == ("api_root0000", "api_second00")


def test_a_drawn_id_never_makes_a_new_thing_a_repeat_of_a_pruned_one(
    monkeypatch: pytest.MonkeyPatch, holder: Holder
) -> None:
    draws(monkeypatch, "api_taken000")
    factories.enqueue("first")
    claimed = factories.claim(holder)
    queue.complete(claimed, factories.answer(claimed), now=NOW)
    queue.prune(settings.TINYOFFICE.retention, now=NOW + 2 * DAY)
    draws(monkeypatch, "api_taken000", "api_free0000")

    assert factories.enqueue("second").message_id == "api_free0000"


def test_drawing_ends_when_no_id_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.enqueue(message_id="api_taken000")
    before = factories.tables()
    monkeypatch.setattr(ids, "new_id", lambda prefix: "api_taken000")

    with pytest.raises(RuntimeError, match="no free message id"):
        factories.enqueue("second")

    assert factories.tables() == before


def test_many_things_at_once_each_get_their_own_result_in_order() -> None:
    factories.enqueue(message_id="old")

    results = queue.enqueue_all(
        [
            factories.submission("a", message_id="a"),
            factories.submission("b", message_id="old"),
            factories.submission("c", message_id="a"),
            fan_out("coder", "writer", message_id="d"),
        ],
        now=NOW,
    )

    assert [type(result) for result in results] == [
        Accepted,
        DuplicateMessage,
        DuplicateMessage,
        Accepted,
    ]
    assert [result.message_id for result in results] == ["a", "old", "a", "d"]
    assert Message.objects.count() == 4
    assert factories.row("a").message == "a"
    assert Event.objects.count() == 4


def test_nothing_at_all_is_accepted_as_nothing() -> None:
    assert queue.enqueue_all([], now=NOW) == []


def test_thousands_of_things_are_accepted_in_one_commit() -> None:
    results = queue.enqueue_all([factories.submission(f"{n}") for n in range(2_500)], now=NOW)

    assert all(isinstance(result, Accepted) for result in results)
    assert Message.objects.count() == Event.objects.count() == 2_500


def test_the_history_keeps_the_text_as_received_with_secrets_masked() -> None:
    accepted = factories.enqueue(f"deploy with {KEY}", received=f"@coder deploy with {KEY}")

    line = AgentMessage.objects.get()
    assert (line.agent_id, line.role, line.channel, line.sender) == (
        "coder",
        "user",
        "api",
        "Alice",
    )
    assert line.content == "@coder deploy with sk-a•••"
    assert (line.message_id, line.conversation_id) == (accepted.message_id,) * 2
    assert factories.row(accepted.message_id).message == f"deploy with {KEY}"
    assert KEY not in Event.objects.get().data


def test_the_history_names_the_agent_that_wrote() -> None:
    factories.enqueue(from_agent="writer")

    assert AgentMessage.objects.get().sender == "writer"


def test_the_event_tells_what_was_accepted_and_carries_at_most_4000_characters() -> None:
    accepted = factories.enqueue("ä" * 10_000)

    event = Event.objects.get()
    assert (event.type, event.agent, event.conversation_id, event.created_at) == (
        "message_enqueued",
        "coder",
        accepted.conversation_id,
        NOW,
    )
    assert json.loads(event.data) == {
        "messageId": accepted.message_id,
        "channel": "api",
        "sender": "Alice",
        "fromAgent": None,
        "message": "ä" * 4_000,
    }


def test_events_are_the_last_statement_of_their_transaction() -> None:
    statements: list[str] = []

    def noted(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(noted):
        queue.enqueue(fan_out("coder", "writer"), now=NOW)

    writes = [sql for sql in statements if "INSERT" in sql]
    assert "INSERT INTO events" in writes[-1]
    assert sum("INSERT INTO events" in sql for sql in writes) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO conversations",
        "INSERT INTO messages",
        "INSERT INTO lanes",
        "INSERT INTO agent_messages",
        "INSERT INTO events",
    ],
)
def test_nothing_is_kept_when_a_statement_fails_midway(statement: str) -> None:
    before = factories.tables()

    with (
        connection.execute_wrapper(fail_at(statement)),
        pytest.raises(OperationalError, match="disk I/O error"),
    ):
        queue.enqueue(fan_out("coder", "writer"), now=NOW)

    assert factories.tables() == before
    assert queue.enqueue(fan_out("coder", "writer"), now=NOW).message_id
