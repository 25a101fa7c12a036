"""Rooms on a real database: a post is all or nothing, and every room comes to rest."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from agents_app import replies, rooms, roster, teams
from agents_app.rooms import RoomMessage, UnknownTeam
from queue_app import queue
from queue_app.errors import BadInput, DuplicateMessage
from queue_app.holders import Holder
from queue_app.models import (
    AgentMessage,
    ChatMessage,
    Conversation,
    Event,
    Intake,
    Message,
    Response,
)
from queue_app.queue import rows
from queue_app.queue.rooms import READ_AFTER, RESTS
from queue_app.values import Claim, NewPost, Outcome, Posted
from tests import factories
from tests.agents_app import cast
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

NO_FILES = replies.Shelf(roots=(), resolve=lambda path: None)


@pytest.fixture(autouse=True)
def company() -> None:
    cast.open_company()


def say(text: str = "stand-up?", team: str = "web", *, now: int = NOW, **fields: Any) -> Posted:
    given = {"sender": "Alice", "sender_id": "alice", "person": "owner", "source": "web"} | fields
    return rooms.post(RoomMessage(team=team, text=text, **given), now=now)


def outcome_of(claimed: Claim, text: str) -> Outcome:
    """Return what the handler makes of an answer."""
    handed = teams.follow_ups(text, claimed.messages, roster.load())
    shown = replies.answers(text, claimed.messages, NO_FILES)
    return Outcome(
        text=text,
        responses=shown.responses,
        follow_ups=handed.follow_ups,
        posts=[*handed.posts, *shown.posts],
        stopped=handed.stopped,
    )


def answer(holder: Holder, agent: str, text: str, *, now: int = NOW + READ_AFTER) -> None:
    claimed = factories.claim(holder, agent, now=now)
    assert queue.complete(claimed, outcome_of(claimed, text), now=now)


def board(team: str = "web") -> list[tuple[str, str]]:
    posts = ChatMessage.objects.filter(team_id=team).order_by("id")
    return list(posts.values_list("from_agent", "message"))


def test_a_persons_post_is_one_row_and_a_message_for_every_member() -> None:
    posted = say()

    assert board() == [("user", "stand-up?")]
    assert ChatMessage.objects.get().pk == posted.post_id
    waiting = Message.objects.order_by("id")
    assert [row.agent for row in waiting] == ["mia", "otto", "pia"]
    assert [row.message_id for row in waiting] == list(posted.message_ids)
    assert all(row.message_id.startswith("chat_") for row in waiting)
    assert {
        (row.channel, row.from_agent, row.team, row.available_at, row.conversation_id)
        for row in waiting
    } == {("chatroom", "user", "web", NOW + READ_AFTER, posted.conversation_id)}
    conversation = Conversation.objects.get()
    assert conversation.pk == posted.conversation_id == posted.message_ids[0]
    assert (conversation.messages, conversation.posts, conversation.open) == (1, 0, 3)
    assert AgentMessage.objects.count() == 3
    assert factories.events() == ["room_post", *["message_enqueued"] * 3]
    assert json.loads(Event.objects.earliest("id").data) == {
        "postId": posted.post_id,
        "team": "web",
        "fromAgent": "user",
        "message": "stand-up?",
        "delivered": 3,
    }


def test_several_posts_are_read_in_one_run(holder: Holder) -> None:
    say("one")
    say("two", now=NOW + 500)

    assert queue.claim(queue.lane_of("mia"), holder, now=NOW + READ_AFTER - 1) is None
    claimed = factories.claim(holder, "mia", now=NOW + READ_AFTER + 500)

    assert [row.message for row in claimed.messages] == ["one", "two"]


def test_a_repeat_changes_nothing() -> None:
    posted = say(external_id="w-1")
    before = factories.tables()

    with pytest.raises(DuplicateMessage) as refused:
        say("again", external_id="w-1")

    assert refused.value.message_id == posted.message_ids[0]
    assert factories.tables() == before


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"team": "ghost"}, UnknownTeam, r"'ghost' \(known: web, ops\)"),
        ({"team": "ops", "reach": ["otto"]}, UnknownTeam, r"\(known: none\)"),
        ({"text": " "}, BadInput, "'message' is empty"),
        ({"text": "a\0b"}, BadInput, "NUL"),
        ({"text": "ä" * 600_000}, BadInput, "1200000 bytes"),
        ({"sender": ""}, BadInput, "'sender' is empty"),
        ({"source": "two words"}, BadInput, "'source'"),
        ({"external_id": "x" * 201}, BadInput, "'external_id'"),
    ],
)
def test_bad_input_leaves_nothing(
    fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = factories.tables()

    with pytest.raises(error, match=message):
        say(**fields)

    assert factories.tables() == before


def test_a_post_that_wakes_nobody_is_refused() -> None:
    with pytest.raises(BadInput, match="'web' has no members"):
        queue.post_to_room(NewPost(team="web", from_agent="user", message="hi"), source="web")


def test_a_member_out_of_reach_is_not_woken() -> None:
    say(reach=["mia", "pia"])

    assert [row.agent for row in Message.objects.order_by("id")] == ["mia", "pia"]


def test_a_post_is_all_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = factories.tables()
    put_in_line = rows.put_in_line
    calls = 0

    def break_at_the_last(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("the disk is full")
        return put_in_line(*arguments)

    monkeypatch.setattr(rows, "put_in_line", break_at_the_last)
    with pytest.raises(OSError, match="full"):
        say()

    assert factories.tables() == before


def test_taken_ids_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = say().message_ids[0]
    drawn = iter([taken, "chat_bbbbbbbb", taken, "chat_cccccccc", "chat_dddddddd"])
    monkeypatch.setattr("queue_app.ids.new_id", lambda prefix: next(drawn))

    posted = say("again")

    assert posted.message_ids == ("chat_bbbbbbbb", "chat_cccccccc", "chat_dddddddd")
    assert Intake.objects.count() == 2


def test_an_agents_post_wakes_the_others_in_the_same_conversation(holder: Holder) -> None:
    posted = say()

    answer(holder, "mia", "[#web: all green]")

    assert board()[1:] == [("mia", "all green")]
    woken = Message.objects.filter(from_agent="mia").order_by("id")
    assert [(row.agent, row.message, row.hop) for row in woken] == [
        ("otto", "all green", 1),
        ("pia", "all green", 1),
    ]
    assert {row.parent_id for row in woken} == {posted.message_ids[0]}
    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.posts, conversation.open) == (1, 1, 4)
    assert not Response.objects.exists()


def test_a_plain_answer_is_shown_and_wakes_nobody(holder: Holder) -> None:
    say()

    answer(holder, "mia", "All green here.")

    assert board() == [("user", "stand-up?"), ("mia", "All green here.")]
    assert not Message.objects.filter(from_agent="mia").exists()
    conversation = Conversation.objects.get()
    assert (conversation.posts, conversation.open) == (0, 2)


def test_silence_is_no_post(holder: Holder) -> None:
    say()

    answer(holder, "mia", "")

    assert len(board()) == 1


def test_a_post_from_a_persons_question_wakes_the_room_and_answers_the_person(
    holder: Holder,
) -> None:
    factories.enqueue("ship it", "mia", channel="telegram")

    answer(holder, "mia", "Done. [#web: shipped]")

    assert board() == [("mia", "shipped")]
    assert Response.objects.get().message == "Done. @mia → #web: shipped\n\n- [mia]"
    assert {row.channel for row in Message.objects.pending()} == {"chatroom"}


def test_a_failed_completion_leaves_no_post(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    say()
    claimed = factories.claim(holder, "mia", now=NOW + READ_AFTER)
    outcome = outcome_of(claimed, "[#web: a] and [@otto: b]")
    before = factories.tables()

    def break_down(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(rows, "close_run", break_down)
    with pytest.raises(OSError, match="full"):
        queue.complete(claimed, outcome, now=NOW + READ_AFTER)

    assert factories.tables() == before


def test_a_lost_claim_posts_nothing(holder: Holder) -> None:
    say()
    late = factories.claim(holder, "mia", now=NOW + READ_AFTER)
    queue.lose(late.lane, late.run_id, now=NOW + READ_AFTER)
    before = factories.tables()

    assert not queue.complete(late, outcome_of(late, "[#web: a]"), now=NOW + READ_AFTER)

    assert factories.tables() == before


def let_all_talk(holder: Holder, members: list[str], *, now: int) -> int:
    """Let every member answer everything by a post until nobody has anything to read."""
    rounds = 0
    while ready := queue.ready_lanes(now=(now := now + READ_AFTER)):
        for lane in ready:
            answer(holder, lane.removeprefix("agent:"), "[#big: me too!]", now=now)
        rounds += 1
        assert rounds < 100, "the room never comes to rest"
    return now


def test_eight_members_who_answer_everything_come_to_rest(holder: Holder) -> None:
    members = [f"agent-{number}" for number in range(8)]
    cast.hire(*members)
    cast.found("big", "Big", tuple(members))
    say("who is there?", "big")

    now = let_all_talk(holder, members, now=NOW)

    conversation = Conversation.objects.get()
    assert (conversation.posts, conversation.open) == (24, 0)
    refused = [text for _, text in board("big") if text.endswith(RESTS)]
    assert len(refused) == factories.events().count("loop_stopped") > 0
    assert len([who for who, text in board("big") if who != "user"]) == 24 + len(refused)
    assert not Message.objects.pending().exists()

    say("once more", "big", now=now)
    let_all_talk(holder, members, now=now)

    assert [row.posts for row in Conversation.objects.order_by("last_at")] == [24, 24]


def test_posts_at_the_same_moment_do_not_pass_the_limit(holder: Holder) -> None:
    posted = say()
    Conversation.objects.filter(pk=posted.conversation_id).update(posts=8)
    claims = [factories.claim(holder, one, now=NOW + READ_AFTER) for one in ("mia", "otto", "pia")]
    outcomes = [outcome_of(claimed, "[#web: me too!]") for claimed in claims]
    together = threading.Barrier(3)

    def complete(claimed: Claim, outcome: Outcome) -> bool:
        try:
            together.wait(timeout=10)
            return queue.complete(claimed, outcome, now=NOW + READ_AFTER)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(complete, claims, outcomes))

    conversation = Conversation.objects.get()
    assert (conversation.posts, conversation.open) == (9, 2)
    assert Message.objects.pending().count() == 2
    assert factories.events().count("loop_stopped") == 2
    assert len(board()) == 4


def test_a_room_at_rest_shows_the_post_and_tells_the_person(holder: Holder) -> None:
    accepted = factories.enqueue("ship it", "mia", channel="telegram")
    Conversation.objects.filter(pk=accepted.conversation_id).update(posts=9)

    answer(holder, "mia", "Done. [#web: shipped]")

    assert board() == [("mia", f"shipped\n\n{RESTS}")]
    assert Response.objects.get().message.endswith(f"- [mia]\n\n{RESTS}")
    assert not Message.objects.pending().exists()
    told = json.loads(Event.objects.get(type="loop_stopped").data)
    assert (told["messages"], told["reason"]) == (2, RESTS)


def test_copies_leave_room_for_handoffs(holder: Holder) -> None:
    say()
    answer(holder, "mia", "[#web: a] [@otto: b]")

    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.posts, conversation.open) == (2, 1, 5)


def test_a_stopped_handoff_is_told_in_the_room(holder: Holder) -> None:
    posted = say()
    Conversation.objects.filter(pk=posted.conversation_id).update(messages=50)

    answer(holder, "mia", "I ask otto. [@otto: b]")

    (_, said) = board()[-1]
    assert said.endswith("(Handing this on was stopped: the conversation has reached its limit.)")
    assert "loop_stopped" in factories.events()


def test_a_pair_that_only_nods_is_stopped_visibly(holder: Holder) -> None:
    factories.enqueue("begin", "mia", channel="telegram", team="web")
    at, agents = NOW, ("mia", "otto")
    for number in range(20):
        agent, mate = agents[number % 2], agents[1 - number % 2]
        claimed = queue.claim(queue.lane_of(agent), holder, now=(at := at + 1))
        if claimed is None:
            break
        recent = teams.recent_exchanges(claimed.primary.conversation_id)
        text = f"[@{mate}: thanks!]"
        handed = teams.follow_ups(text, claimed.messages, roster.load(), recent)
        shown = replies.answers(text, claimed.messages, NO_FILES)
        queue.complete(
            claimed,
            Outcome(
                text=text,
                responses=shown.responses,
                follow_ups=handed.follow_ups,
                stopped=handed.stopped,
            ),
            now=at,
        )

    assert Message.objects.count() == 7
    assert factories.events().count("loop_stopped") == 1
    noted = Response.objects.filter(message__contains="6 short messages in a row")
    assert noted.count() == 1
    conversation = Conversation.objects.get()
    assert (conversation.messages, conversation.open) == (7, 0)


@pytest.mark.parametrize("text", ["my key is sk-abcdefghijklmnopqrstuvwx"])
def test_secrets_are_masked_on_the_board_and_not_for_the_agent(text: str) -> None:
    say(text)

    assert "abcdefgh" not in board()[0][1]
    assert Message.objects.earliest("id").message == text
