"""The 38 examples of the contract, and what routing does with everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app import rooms, routing, teams
from agents_app.rooms import RoomMessage
from agents_app.roster import Roster
from agents_app.routing import NobodyToAsk, Route, Target, UnknownAgent, route
from tests.agents_app.cast import ROSTER, held


def one(agent: str, text: str, team: str | None = None) -> Route:
    return Route(targets=(Target(agent=agent, text=text, team=team),))


def with_shared(shared: str, mate: str, text: str) -> str:
    return f"{shared}\n\n------\n\nFor you, @{mate}:\n{text}"


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        pytest.param("@otto ship it", None, one("otto", "ship it"), id="1"),
        pytest.param("@OTTO ship it", None, one("otto", "ship it"), id="2"),
        pytest.param("@web launch the page", None, one("mia", "launch the page", "web"), id="3"),
        pytest.param("@website launch", None, one("mia", "launch", "web"), id="4"),
        pytest.param("@Rae hi", None, one("rae", "hi"), id="5"),
        pytest.param("@otto\nline two", None, one("otto", "line two"), id="6"),
        pytest.param("@otto", None, one("mia", "@otto"), id="7"),
        pytest.param("@ottoship it", None, one("mia", "@ottoship it"), id="8"),
        pytest.param("  @otto hi", None, one("mia", "  @otto hi"), id="9"),
        pytest.param("@otto, hi", None, one("otto", "hi"), id="10-comma"),
        pytest.param("@otto: hi", None, one("otto", "hi"), id="10-colon"),
        pytest.param("@qa lead check", None, one("mia", "@qa lead check"), id="11"),
        pytest.param("@nobody hi", None, one("mia", "@nobody hi"), id="12"),
        pytest.param("hello", "pia", one("pia", "hello"), id="13"),
        pytest.param("@otto hi", "pia", one("pia", "@otto hi"), id="14"),
        pytest.param("@web hi", "web", one("mia", "hi", "web"), id="15"),
    ],
)
def test_the_contract_for_incoming_messages(text: str, field: str | None, expected: Route) -> None:
    assert route(text, ROSTER, addressed_to=field) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param("[@otto: build it]", {"otto": "build it"}, id="16"),
        pytest.param(
            "Due Friday.\n[@otto: build] [@pia: test]",
            {
                "otto": with_shared("Due Friday.", "otto", "build"),
                "pia": with_shared("Due Friday.", "pia", "test"),
            },
            id="17",
        ),
        pytest.param("[@otto,pia: status?]", {"otto": "status?", "pia": "status?"}, id="18"),
        pytest.param("[@Otto , PIA: status?]", {"otto": "status?", "pia": "status?"}, id="19"),
        pytest.param(
            "[@otto: fix rows[0] and m[k[1]]] thanks",
            {"otto": with_shared("thanks", "otto", "fix rows[0] and m[k[1]]")},
            id="20",
        ),
        pytest.param("[@otto: one] [@otto: two]", {"otto": "one\n\ntwo"}, id="21"),
        pytest.param("[@mia: note to self]", {}, id="22"),
        pytest.param("[@zed: hi]", {}, id="23"),
        pytest.param("[@ghost,otto: hey]", {"otto": "hey"}, id="24"),
        pytest.param("[@otto]", {}, id="25"),
        pytest.param("[@otto: ]", {}, id="26"),
        pytest.param(
            "[@otto: never closed [@pia: hi]",
            {"pia": with_shared("[@otto: never closed", "pia", "hi")},
            id="27",
        ),
        pytest.param(
            "[@otto] look: [@pia: hi]",
            {"pia": with_shared("[@otto] look:", "pia", "hi")},
            id="28",
        ),
        pytest.param("[@otto: tell [@pia: hi] now]", {"otto": "tell [@pia: hi] now"}, id="29"),
        pytest.param("[@web: hi]", {}, id="30"),
        pytest.param(
            "[#web: shipped] [@otto: celebrate]",
            {"otto": with_shared("[#web: shipped]", "otto", "celebrate")},
            id="31",
        ),
        pytest.param("@otto please look", {}, id="32"),
    ],
)
def test_the_contract_for_handoffs(answer: str, expected: dict[str, str]) -> None:
    found = teams.follow_ups(answer, [held(agent="mia", team="web")], ROSTER)

    assert {new.agent: new.message for new in found.follow_ups} == expected


@pytest.mark.parametrize(
    ("writer", "answer", "expected"),
    [
        pytest.param(
            "mia", "[#web: shipped] [@otto: x]", [("web", "shipped", "otto pia")], id="31"
        ),
        pytest.param("mia", "[#web: v2 is out]", [("web", "v2 is out", "otto pia")], id="33"),
        pytest.param(
            "mia",
            "[#WEB: a] [#ops: b]",
            [("web", "a", "otto pia"), ("ops", "b", "zed")],
            id="34",
        ),
        pytest.param("otto", "[#ops: b]", [], id="35"),
        pytest.param("mia", "[#website: hi], [#web,ops: hi], [#web: ]", [], id="36"),
        pytest.param(
            "mia",
            "[#web: see [1] and [@otto: hi]]",
            [("web", "see [1] and [@otto: hi]", "otto pia")],
            id="37",
        ),
    ],
)
def test_the_contract_for_room_posts(
    writer: str, answer: str, expected: list[tuple[str, str, str]]
) -> None:
    found = teams.follow_ups(answer, [held(agent=writer)], ROSTER)

    assert [
        (post.team, post.message, " ".join(new.agent for new in post.deliveries))
        for post in found.posts
    ] == expected


def test_the_contract_for_a_direct_message_inside_a_post_37() -> None:
    found = teams.follow_ups("[#web: see [1] and [@otto: hi]]", [held(agent="mia")], ROSTER)

    (handoff,) = found.follow_ups
    assert handoff.agent == "otto"
    assert handoff.message.endswith("For you, @otto:\nhi")


def test_the_contract_for_a_persons_post_38() -> None:
    team = ROSTER.team("web")
    assert team is not None
    said = RoomMessage(team="web", text="stand-up?", sender="Alice", person="owner", source="web")

    post = rooms.of_person(said, team)

    assert (post.team, post.from_agent, post.message) == ("web", "user", "stand-up?")
    assert [new.agent for new in post.deliveries] == ["mia", "otto", "pia"]
    assert {(new.channel, new.from_agent, new.message) for new in post.deliveries} == {
        ("chatroom", "user", "stand-up?")
    }


def test_a_tag_with_nothing_behind_it_still_reaches_its_agent() -> None:
    assert route("@otto \n", ROSTER) == one("otto", "@otto \n")


def test_only_one_mark_is_dropped_behind_a_tag() -> None:
    assert route("@otto:: hi", ROSTER) == one("mia", "@otto:: hi")


def test_zero_width_spaces_do_not_hide_a_tag() -> None:
    assert route("\u200b@\u200botto hi", ROSTER) == one("otto", "hi")


def test_a_choice_that_the_text_repeats_is_said_once() -> None:
    assert route("@Pia: hi", ROSTER, addressed_to="PIA") == one("pia", "hi")
    assert route("@pia\n", ROSTER, addressed_to="pia") == one("pia", "@pia\n")


def test_an_explicit_choice_wins_over_tags() -> None:
    text = "look [@otto: build]"
    assert route(text, ROSTER, addressed_to="pia") == one("pia", text)


@pytest.mark.parametrize("name", ["ghost", "", "QA Lead", "Website"])
def test_an_unknown_choice_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownAgent) as refused:
        route("hi", ROSTER, addressed_to=name)

    assert str(refused.value) == (
        f"No agent or team has the id '{name}' (known: mia, otto, pia, zed, rae, web, ops). "
        "Use one of these, or leave out `agent` to reach the default one."
    )


def test_an_office_without_agents_refuses() -> None:
    with pytest.raises(NobodyToAsk, match="Add an agent"):
        route("hi", Roster(agents=()))


def test_a_person_reaches_several_with_what_is_said_to_all() -> None:
    found = route("Due Friday. [@otto: build] [@QA Lead, zed: test]", ROSTER)

    assert found.targets == (
        Target(agent="otto", text=with_shared("Due Friday.", "otto", "build")),
        Target(agent="pia", text=with_shared("Due Friday.", "pia", "test")),
        Target(agent="zed", text=with_shared("Due Friday.", "zed", "test")),
    )
    assert found.notes == ()


def test_a_team_means_its_leader_and_nobody_is_asked_twice() -> None:
    found = route("[@web, mia: hi] [@mia: and you?] [@mia: ]", ROSTER)

    assert found.targets == (Target(agent="mia", text="hi\n\nand you?", team="web"),)


def test_a_leading_tag_wins_over_brackets() -> None:
    assert route("@mia say [@otto: hi]", ROSTER) == one("mia", "say [@otto: hi]")


def test_unknown_names_get_nothing_and_the_sender_hears_of_it() -> None:
    found = route("[@ghost, otto: hi] [@spook: boo]", ROSTER)

    assert found.targets == (Target(agent="otto", text="hi"),)
    assert found.notes == (
        "Nobody you can write to is called @ghost, @spook; that part was delivered to no one.",
    )


def test_if_nobody_is_known_the_default_agent_gets_the_text() -> None:
    found = route("[@ghost: hi] there", ROSTER)

    assert found.targets == (Target(agent="mia", text="[@ghost: hi] there"),)
    assert found.notes[0].endswith("@mia was asked instead.")


def test_a_note_stays_short_whatever_is_unknown() -> None:
    text = " ".join(f"[@ghost{number}{'x' * 500}: hi]" for number in range(1_000))

    (note,) = route(text, ROSTER).notes

    assert len(note) < 1_000
    assert "and 990 more" in note


@pytest.mark.parametrize("text", ["`[@otto: hi]`", "> [@otto: hi]", "```\n[@otto: hi]\n```"])
def test_code_and_quotes_of_a_person_reach_nobody_else(text: str) -> None:
    assert route(text, ROSTER) == one("mia", text)


class TestReach:
    """Whoever is out of reach is not there."""

    def test_nothing_given_is_the_default_agent(self) -> None:
        assert route("hi", ROSTER, reach=()) == one("mia", "hi")
        assert route("@otto hi", ROSTER, reach=()) == one("mia", "@otto hi")

    def test_without_the_default_agent_the_first_within_reach_answers(self) -> None:
        assert route("hi", ROSTER, reach=["zed", "otto"]) == one("otto", "hi")

    def test_a_team_stands_for_its_members(self) -> None:
        assert route("@pia hi", ROSTER, reach=["web"]) == one("pia", "hi")
        assert route("@zed hi", ROSTER, reach=["web"]) == one("mia", "@zed hi")

    def test_a_team_is_out_of_reach_with_its_leader(self) -> None:
        assert route("@web hi", ROSTER, reach=["otto"]) == one("otto", "@web hi")

    def test_a_choice_out_of_reach_is_unknown_and_names_no_others(self) -> None:
        with pytest.raises(UnknownAgent, match=r"'zed' \(known: otto\)"):
            route("hi", ROSTER, addressed_to="zed", reach=["otto"])

    def test_brackets_do_not_reach_further(self) -> None:
        found = route("[@otto,zed,ops: hi]", ROSTER, reach=["otto"])

        assert [target.agent for target in found.targets] == ["otto"]
        assert "@zed, @ops" in found.notes[0]

    def test_a_reach_of_agents_who_left_is_nobody(self) -> None:
        with pytest.raises(NobodyToAsk):
            route("hi", ROSTER, reach=["ghost"])

    def test_a_handoff_does_not_reach_further(self) -> None:
        batch = [held(agent="mia", team="web")]
        answer = "[@otto: a] [@pia: b] [#web: c] [#ops: d]"

        found = teams.follow_ups(answer, batch, ROSTER.within(["mia", "otto"]))

        assert [new.agent for new in found.follow_ups] == ["otto"]
        assert [[new.agent for new in post.deliveries] for post in found.posts] == [["otto"]]


NAMES = st.sampled_from(["otto", "pia", "web", "ghost", "QA Lead", "", "@", "[", "😀"])
PIECES = st.one_of(
    st.sampled_from(["[@", "[#", "]", ":", ",", "@", "`", "```", "> ", "\n", " ", "\u200b"]),
    NAMES,
    st.text(max_size=5),
)


@given(text=st.lists(PIECES, min_size=1).map("".join))
def test_every_text_is_routed_and_only_to_known_agents(text: str) -> None:
    found = routing.route(text, ROSTER)

    agents = [target.agent for target in found.targets]
    assert agents
    assert len(agents) == len(set(agents))
    assert set(agents) <= {agent.id for agent in ROSTER.agents}
    assert all(target.text.strip() for target in found.targets) or not text.strip()


@given(
    text=st.lists(PIECES, min_size=1).map("".join), reach=st.sets(st.sampled_from(["otto", "ops"]))
)
def test_no_text_reaches_further_than_its_sender(text: str, reach: set[str]) -> None:
    allowed = {"otto": {"otto"}, "ops": {"zed", "mia"}}
    within = {agent for name in reach for agent in allowed[name]} or {"mia"}

    found = routing.route(text, ROSTER, reach=reach)

    assert {target.agent for target in found.targets} <= within
