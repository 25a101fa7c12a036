"""The company of the routing examples, as values and as rows."""

from __future__ import annotations

from typing import Any

from agents_app.models import Agent, Membership, Team
from agents_app.roster import AgentEntry, Roster, TeamEntry
from queue_app.values import HeldMessage
from tests.factories import NOW

AGENTS = {"mia": "Mia", "otto": "Otto", "pia": "QA Lead", "zed": "Zed", "rae": "Rae"}
TEAMS = {"web": ("Website", ("mia", "otto", "pia")), "ops": ("Night Ops", ("zed", "mia"))}

ROSTER = Roster(
    agents=tuple(AgentEntry(id=key, name=name) for key, name in AGENTS.items()),
    teams=tuple(
        TeamEntry(id=key, name=name, members=members, leader=members[0])
        for key, (name, members) in TEAMS.items()
    ),
)


def hire(*agents: str) -> None:
    """Write agents into the database, in this order."""
    for number, agent in enumerate(agents):
        at = NOW + number
        Agent.objects.create(
            id=agent,
            name=AGENTS.get(agent, agent.title()),
            provider="rehearsal",
            created_at=at,
            updated_at=at,
        )


def found(team: str, name: str, members: tuple[str, ...], leader: str | None = None) -> None:
    """Write a team into the database; without a leader the first member leads."""
    leads = members[0] if leader is None else leader
    row = Team.objects.create(
        id=team, name=name, leader_agent=leads, created_at=NOW, updated_at=NOW
    )
    for position, agent in enumerate(members):
        Membership.objects.create(team=row, agent_id=agent, position=position)


def open_company() -> None:
    """Write the whole cast into the database."""
    hire(*AGENTS)
    for number, (team, (name, members)) in enumerate(TEAMS.items()):
        found(team, name, members)
        Team.objects.filter(pk=team).update(created_at=NOW + number)


def held(text: str = "hello", agent: str = "mia", **fields: Any) -> HeldMessage:
    """Return a message that a run holds."""
    given: dict[str, Any] = {
        "id": 1,
        "message_id": "telegram_aaaaaaaa",
        "channel": "telegram",
        "sender": "Alice",
        "sender_id": "alice",
        "message": text,
        "agent": agent,
        "files": None,
        "conversation_id": "telegram_aaaaaaaa",
        "from_agent": None,
        "retry_count": 0,
        "created_at": NOW,
        "person": "owner",
        "team": None,
        "thread": None,
        "parent_id": None,
        "hop": 0,
    }
    return HeldMessage(**given | fields)
