"""The roster as the database has it."""

from __future__ import annotations

from typing import Any

import pytest

from agents_app import roster
from agents_app.models import Agent, Team
from agents_app.roster import Addressee, AgentEntry, Roster, TeamEntry
from tests.agents_app import cast

pytestmark = pytest.mark.django_db


def test_it_is_read_in_order_with_three_queries(django_assert_num_queries: Any) -> None:
    cast.open_company()

    with django_assert_num_queries(3):
        found = roster.load()

    assert found == cast.ROSTER


def test_the_default_agent_is_tinyagi_or_the_first() -> None:
    cast.hire("zed", "tinyagi", "mia")
    assert roster.load().default == "tinyagi"

    Agent.objects.get(pk="tinyagi").delete()
    assert roster.load().default == "zed"

    Agent.objects.all().delete()
    assert roster.load().default is None


@pytest.mark.parametrize("leader", ["rae", "ghost", ""])
def test_a_leader_who_is_no_member_is_followed_by_the_first(leader: str) -> None:
    cast.hire("mia", "otto", "rae")
    cast.found("web", "Website", ("otto", "mia"), leader=leader)

    assert roster.load().find("web") == Addressee(agent="otto", team="web")


def test_a_team_without_members_cannot_be_addressed() -> None:
    cast.hire("mia")
    cast.found("web", "Website", ("mia",))
    Team.objects.get().members.all().delete()

    found = roster.load()

    assert found.find("web") is None
    assert found.ids == ("mia",)


def test_ids_come_before_names_and_agents_before_teams() -> None:
    found = Roster(
        agents=(AgentEntry(id="a", name="web"), AgentEntry(id="b", name="A")),
        teams=(
            TeamEntry(id="web", name="Both", members=("b",), leader="b"),
            TeamEntry(id="c", name="a", members=("b",), leader="b"),
        ),
    )

    assert found.find("A") == Addressee(agent="a")
    assert found.find("web") == Addressee(agent="b", team="web")
    assert found.find(" BOTH ") == Addressee(agent="b", team="web")
    assert found.find_id("both") is None
