"""What an answer hands on, beyond the examples of the contract."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app import teams
from agents_app.teams import Exchange
from queue_app import limits
from queue_app.models import AgentMessage
from tests import factories
from tests.agents_app.cast import ROSTER, held


def handed_to(answer: str, **fields: object) -> list[str]:
    found = teams.follow_ups(answer, [held(**fields)], ROSTER)
    return [new.agent for new in found.follow_ups]


def test_a_handoff_keeps_the_persons_address_and_knows_its_writer() -> None:
    batch = [held(agent="mia", team="web", thread="t7", person="telegram:alice", hop=2)]

    (new,) = teams.follow_ups("[@otto: build]", batch, ROSTER).follow_ups

    assert (new.channel, new.sender, new.sender_id, new.thread, new.person) == (
        "telegram",
        "Alice",
        "alice",
        "t7",
        "telegram:alice",
    )
    assert (new.agent, new.from_agent, new.team, new.hop) == ("otto", "mia", "web", 3)


def test_the_hop_is_one_more_than_the_greatest_of_the_batch() -> None:
    batch = [held(hop=1), held(hop=4), held(hop=0)]

    found = teams.follow_ups("[@otto: a] [#web: b]", batch, ROSTER)

    assert found.follow_ups[0].hop == 5
    assert {new.hop for new in found.posts[0].deliveries} == {5}


@pytest.mark.parametrize(
    ("agent", "team", "expected"),
    [
        ("mia", None, ["otto", "pia"]),
        ("mia", "ops", ["zed"]),
        ("mia", "gone", ["otto", "pia"]),
        ("zed", "web", ["mia"]),
        ("rae", None, []),
        ("rae", "web", []),
    ],
)
def test_mates_are_those_of_the_team_asked_through_or_else_of_the_first(
    agent: str, team: str | None, expected: list[str]
) -> None:
    assert handed_to("[@mia,otto,pia,zed,rae: hi]", agent=agent, team=team) == expected


def test_a_mate_named_twice_in_one_tag_reads_it_once() -> None:
    (new,) = teams.follow_ups("[@otto,otto: hi]", [held()], ROSTER).follow_ups

    assert new.message == "hi"


def test_a_room_named_twice_gets_one_post() -> None:
    (post,) = teams.follow_ups("[#web: a] [#web: b]", [held()], ROSTER).posts

    assert post.message == "a\n\nb"


def test_what_reaches_nobody_is_told_to_the_log() -> None:
    found = teams.follow_ups("[@zed,ghost,mia: a] [#nowhere: b] [@otto: ]", [held()], ROSTER)

    assert found.ignored == ("#nowhere", "@zed", "@ghost", "@mia")
    assert not found.follow_ups


def test_a_post_wakes_the_others_and_opens_three_posts_per_member() -> None:
    batch = [held(agent="mia", channel="telegram", thread="t7")]

    (post,) = teams.follow_ups("[#web: v2]", batch, ROSTER).posts

    assert (post.team, post.from_agent, post.most) == ("web", "mia", 9)
    assert {(new.channel, new.thread, new.from_agent, new.team) for new in post.deliveries} == {
        ("chatroom", None, "mia", "web")
    }


def test_more_than_a_message_holds_is_cut_where_it_hurts_least() -> None:
    own = "o" * 1000
    answer = f"{'s' * 3 * limits.MAX_TEXT} [@otto: {own}] [#web: {'ä' * limits.MAX_TEXT}]"

    found = teams.follow_ups(answer, [held()], ROSTER)

    assert found.follow_ups[0].message.endswith(f"For you, @otto:\n{own}")
    assert "(Cut here:" in found.follow_ups[0].message
    assert found.posts[0].message.endswith("longer than a message can be.)")


def test_an_own_part_that_fills_a_message_leaves_no_room_for_more() -> None:
    found = teams.follow_ups(f"all [@otto: {'o' * 2 * limits.MAX_TEXT}]", [held()], ROSTER)

    assert len(found.follow_ups[0].message.encode()) == limits.MAX_TEXT


def test_unreadable_output_does_not_stop_a_handoff() -> None:
    (new,) = teams.follow_ups("[@otto: a\0b \ud83d]", [held()], ROSTER).follow_ups

    assert new.message == "a\ufffdb \ufffd"


def nods(number: int, length: int = 10) -> list[Exchange]:
    pair = ("mia", "otto")
    return [
        Exchange(from_agent=pair[at % 2], to_agent=pair[(at + 1) % 2], length=length)
        for at in range(number)
    ]


class TestPairRule:
    """Six short messages in a row between two agents, and no seventh."""

    NEW = Exchange(from_agent="mia", to_agent="otto", length=199)

    def test_six_are_enough(self) -> None:
        assert teams.is_stuck(nods(6), self.NEW)
        assert teams.is_stuck(nods(60), self.NEW)

    def test_five_are_not(self) -> None:
        assert not teams.is_stuck(nods(5), self.NEW)

    @pytest.mark.parametrize("at", range(6))
    def test_a_long_one_among_them_breaks_the_row(self, at: int) -> None:
        recent = nods(6)
        recent[at] = nods(6, length=200)[at]

        assert not teams.is_stuck(recent, self.NEW)

    @pytest.mark.parametrize("at", range(6))
    def test_somebody_else_among_them_breaks_the_row(self, at: int) -> None:
        recent = nods(6)
        recent[at] = Exchange(from_agent="Alice", to_agent="otto", length=2)

        assert not teams.is_stuck(recent, self.NEW)

    def test_a_long_answer_ends_it(self) -> None:
        long = Exchange(from_agent="mia", to_agent="otto", length=200)

        assert not teams.is_stuck(nods(6), long)

    def test_only_the_stuck_handoff_is_stopped_and_the_sender_hears_why(self) -> None:
        found = teams.follow_ups("[@otto: thanks!] [@pia: go]", [held()], ROSTER, nods(6))

        assert [new.agent for new in found.follow_ups] == ["pia"]
        assert found.stopped == (
            "(Handing this on was stopped: @mia and @otto wrote each other "
            "6 short messages in a row.)",
        )


@pytest.mark.django_db
def test_the_latest_exchanges_are_read_from_history_in_order() -> None:
    accepted = factories.enqueue("hello", agent="mia", sender="Alice")
    for number in range(7):
        AgentMessage.objects.create(
            agent_id="otto" if number % 2 else "mia",
            role="user",
            channel="api",
            sender="mia" if number % 2 else "otto",
            message_id=f"internal_{number}",
            content="x" * number,
            conversation_id=accepted.conversation_id,
            created_at=factories.NOW,
        )

    recent = teams.recent_exchanges(accepted.conversation_id)

    assert [one.length for one in recent] == [1, 2, 3, 4, 5, 6]
    assert recent[-1] == Exchange(from_agent="otto", to_agent="mia", length=6)


@given(
    answer=st.lists(
        st.sampled_from(
            ["[@", "[#", "otto", "mia", "zed", "web", "ops", ",", ": hi", "]", "`", " "]
        )
    ).map("".join)
)
def test_no_answer_reaches_beyond_the_team_or_back_to_its_writer(answer: str) -> None:
    found = teams.follow_ups(answer, [held(agent="mia", team="web")], ROSTER)

    mates = [new.agent for new in found.follow_ups]
    assert set(mates) <= {"otto", "pia"}
    assert len(mates) == len(set(mates))
    assert {post.team for post in found.posts} <= {"web", "ops"}
    assert all(new.agent != "mia" for post in found.posts for new in post.deliveries)
