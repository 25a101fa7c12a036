"""Who is in the office at one moment: agents, teams, and whom a name means; frozen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from agents_app.models import Agent, Membership, Team

DEFAULT_AGENT = "tinyagi"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    """An agent as routing knows it."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamEntry:
    """A team with its members in order; one of them leads."""

    id: str
    name: str
    members: tuple[str, ...]
    leader: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """Whom a name means: an agent, by itself or as the leader of a team."""

    agent: str
    team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Agents and teams in their order; the first agent stands in for a missing default agent."""

    agents: tuple[AgentEntry, ...]
    teams: tuple[TeamEntry, ...] = ()
    _by_id: Mapping[str, Addressee] = field(init=False, repr=False, compare=False)
    _by_name: Mapping[str, Addressee] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids: dict[str, Addressee] = {}
        names: dict[str, Addressee] = {}
        for agent in self.agents:
            ids.setdefault(agent.id, Addressee(agent=agent.id))
            names.setdefault(agent.name.strip().lower(), Addressee(agent=agent.id))
        for team in self.teams:
            leader = Addressee(agent=team.leader, team=team.id)
            ids.setdefault(team.id, leader)
            names.setdefault(team.name.strip().lower(), leader)
        object.__setattr__(self, "_by_id", ids)
        object.__setattr__(self, "_by_name", names)

    @property
    def default(self) -> str | None:
        """Return who gets what is addressed to nobody; None when nobody is there."""
        ids = [agent.id for agent in self.agents]
        return DEFAULT_AGENT if DEFAULT_AGENT in ids else next(iter(ids), None)

    @property
    def ids(self) -> tuple[str, ...]:
        """Return every id that can be addressed, agents first."""
        return tuple(self._by_id)

    def find_id(self, name: str) -> Addressee | None:
        """Return the agent, or the leader of the team, with this id; case does not matter."""
        return self._by_id.get(name.strip().lower())

    def find(self, name: str) -> Addressee | None:
        """Return whom an id means, else a display name; agents come before teams in both."""
        return self.find_id(name) or self._by_name.get(name.strip().lower())

    def team(self, team_id: str | None) -> TeamEntry | None:
        """Return the team with this very id."""
        return next((team for team in self.teams if team.id == team_id), None)

    def team_of(self, agent: str, routed: str | None) -> TeamEntry | None:
        """Return the team an agent works in: the one it was asked through, else its first."""
        mine = [team for team in self.teams if agent in team.members]
        return next((team for team in mine if team.id == routed), next(iter(mine), None))

    def within(self, reach: Collection[str] | None) -> Roster:
        """Return the part a sender may reach; None is everybody, nothing is the default agent.

        A team in the reach stands for its members. Whoever is outside is not there at all: not by
        name, not in a team, not as the default, so that no way through routing or handoffs leads there.
        """
        if reach is None:
            return self
        named: set[str | None] = {*reach} or {self.default}
        for team in self.teams:
            if team.id in reach:
                named.update(team.members)
        return Roster(
            agents=tuple(agent for agent in self.agents if agent.id in named),
            teams=tuple(_part(team, named) for team in self.teams if team.leader in named),
        )


def load() -> Roster:
    """Read the roster, in three queries."""
    agents = tuple(
        AgentEntry(id=agent_id, name=name)
        for agent_id, name in Agent.objects.order_by("created_at", "id").values_list("id", "name")
    )
    members: dict[str, list[str]] = {}
    places = Membership.objects.order_by("position", "id").values_list("team_id", "agent_id")
    for team_id, agent_id in places:
        members.setdefault(team_id, []).append(agent_id)
    teams = Team.objects.order_by("created_at", "id").values_list("id", "name", "leader_agent")
    # A team without members has nobody who could answer: it cannot be addressed.
    return Roster(
        agents=agents,
        teams=tuple(
            TeamEntry(id=team, name=name, members=tuple(own), leader=_leader(leader, own))
            for team, name, leader in teams
            if (own := members.get(team))
        ),
    )


def _leader(chosen: str, members: list[str]) -> str:
    """Return who leads: a leader who is gone or has left is followed by the first member."""
    return chosen if chosen in members else members[0]


def _part(team: TeamEntry, named: Collection[str | None]) -> TeamEntry:
    members = tuple(member for member in team.members if member in named)
    return TeamEntry(id=team.id, name=team.name, members=members, leader=team.leader)
