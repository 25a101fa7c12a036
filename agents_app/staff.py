"""Agents and teams come, change and go; each change is audited and told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from agents_app import workspaces
from agents_app.models import Agent, Membership, Team
from agents_app.providers import PROVIDERS
from queue_app import audit, clock, events, limits, queue
from queue_app.batches import Batching
from queue_app.errors import BadInput, NotPending, UnknownRun
from queue_app.events import NewEvent
from queue_app.models import Lane, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What an agent is made of."""

    id: str
    name: str
    provider: str = "rehearsal"
    model: str = ""
    batching: Batching = Batching.TOGETHER
    limits: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limits.agent_id(self.id)
        limits.name("name", self.name)
        if self.provider not in PROVIDERS:
            raise BadInput(
                f"provider is '{self.provider}', which is not one of: {', '.join(PROVIDERS)}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPlan:
    """What a team is made of; the leader is one of its members."""

    id: str
    name: str
    agents: Sequence[str]
    leader_agent: str

    def __post_init__(self) -> None:
        limits.agent_id(self.id)
        limits.name("name", self.name)
        if not self.agents or len(set(self.agents)) != len(self.agents):
            raise BadInput(f"team '{self.id}' needs members, each named once.")
        if self.leader_agent not in self.agents:
            raise BadInput(
                f"'{self.leader_agent}' cannot lead '{self.id}': the leader is one of its members "
                f"({', '.join(self.agents)})."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """What an agent's deletion led to."""

    cancelled: int  # waiting messages that are dead now
    stopped: int  # runs that were asked to stop
    teams: tuple[str, ...]  # teams that lost a member


def put_agent(plan: AgentPlan, by: str, *, now: int | None = None) -> Agent:
    """Make an agent with its lane and workspace, or change it; what the plan leaves out stays."""
    at = clock.now() if now is None else now
    if Team.objects.filter(pk=plan.id).exists():
        raise BadInput(f"'{plan.id}' is a team's id; an agent needs another.")
    columns = {
        "name": plan.name,
        "provider": plan.provider,
        "model": plan.model,
        "batching": plan.batching,
        "limits": plan.limits,
        "extra": plan.extra,
        "updated_at": at,
    }
    with transaction.atomic():
        agent, made = Agent.objects.update_or_create(
            pk=plan.id, defaults=columns, create_defaults={**columns, "created_at": at}
        )
        Lane.objects.get_or_create(name=queue.lane_of(plan.id))
        _tell("create agent" if made else "change agent", "agent_changed", plan.id, by, at)
    workspaces.ensure(settings.TINYOFFICE.workspace, plan.id, agent.working_directory)
    queue.unblock(queue.lane_of(plan.id), now=at)
    return agent


def put_team(plan: TeamPlan, by: str, *, now: int | None = None) -> Team:
    """Make a team or change it, members in order."""
    at = clock.now() if now is None else now
    if Agent.objects.filter(pk=plan.id).exists():
        raise BadInput(f"'{plan.id}' is an agent's id; a team needs another.")
    known = set(Agent.objects.filter(pk__in=plan.agents).values_list("pk", flat=True))
    if unknown := [name for name in plan.agents if name not in known]:
        raise BadInput(f"team '{plan.id}' names agents that do not exist: {', '.join(unknown)}.")
    with transaction.atomic():
        columns = {"name": plan.name, "leader_agent": plan.leader_agent, "updated_at": at}
        team, made = Team.objects.update_or_create(
            pk=plan.id, defaults=columns, create_defaults={**columns, "created_at": at}
        )
        team.members.all().delete()
        Membership.objects.bulk_create(
            Membership(team=team, agent_id=name, position=place)
            for place, name in enumerate(plan.agents)
        )
        _tell("create team" if made else "change team", "team_changed", plan.id, by, at)
    return team


def delete_team(team_id: str, by: str, *, now: int | None = None) -> bool:
    """Dissolve a team; its agents stay. False when there is none."""
    at = clock.now() if now is None else now
    with transaction.atomic():
        if not Team.objects.filter(pk=team_id).delete()[0]:
            return False
        _tell("delete team", "team_changed", team_id, by, at)
    return True


def waiting_for(agent_id: str) -> int:
    """Return how many messages a deletion would make dead; say it before you ask."""
    return Message.objects.pending().for_agent(agent_id).count()


def delete_agent(agent_id: str, by: str, *, now: int | None = None) -> Farewell | None:
    """Delete an agent: it leaves its teams, what waits for it ends dead. None when there is none."""
    at = clock.now() if now is None else now
    with transaction.atomic():
        teams = tuple(
            Membership.objects.filter(agent_id=agent_id).values_list("team_id", flat=True)
        )
        if not Agent.objects.filter(pk=agent_id).delete()[0]:
            return None
        for team in Team.objects.filter(pk__in=teams):
            _pass_on(team, agent_id)
        _tell("delete agent", "agent_changed", agent_id, by, at)
    return Farewell(
        cancelled=_cancel_waiting(agent_id, by, at),
        stopped=_stop_running(agent_id, by),
        teams=teams,
    )


def _pass_on(team: Team, gone: str) -> None:
    """Let the first remaining member lead; a team of nobody vanishes."""
    remaining = team.members.order_by("position").first()
    if remaining is None:
        team.delete()
    elif team.leader_agent == gone:
        Team.objects.filter(pk=team.pk).update(leader_agent=remaining.agent_id)


def _cancel_waiting(agent_id: str, by: str, now: int) -> int:
    cancelled = 0
    waiting = Message.objects.pending().for_agent(agent_id).in_line()
    while some := list(waiting.values_list("pk", flat=True)[:100]):
        for row_id in some:
            try:
                queue.cancel(row_id, f"{by} (@{agent_id} was deleted)", now=now)
                cancelled += 1
            except NotPending:
                continue  # claimed meanwhile: its run is stopped below
    return cancelled


def _stop_running(agent_id: str, by: str) -> int:
    held = Lane.objects.filter(name=queue.lane_of(agent_id), run_id__isnull=False)
    stopped = 0
    for run_id in held.values_list("run_id", flat=True):
        try:
            queue.request_stop(int(run_id or 0), f"{by} (@{agent_id} was deleted)")
            stopped += 1
        except UnknownRun:
            continue  # it ended by itself meanwhile
    return stopped


def _tell(action: str, event: str, subject: str, by: str, now: int) -> None:
    audit.record(by, action, subject, now=now)
    agent = subject if event == "agent_changed" else None
    data = {"id": subject, "action": action, "by": by}
    with connection.cursor() as cursor:
        events.record(cursor, [NewEvent(event, agent, None, data)], now=now)
