"""An office at work: scripted agents, messages, and real processors in a hurry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from agents_app import intake, staff
from agents_app.intake import Inbound
from agents_app.staff import AgentPlan, TeamPlan
from queue_app.batches import Batching
from queue_app.models import Message, Run
from queue_app.values import Accepted
from tests.processes import Child, living_in

IN_A_HURRY = {
    "TINYAGI_BEAT_SECONDS": "0.2",
    "TINYAGI_LOST_AFTER_SECONDS": "1",
    "TINYAGI_RETRY_WAITS": "0.01,0.01",
    "TINYAGI_DRAIN_SECONDS": "1",
}


def hire(
    agent: str,
    *,
    batching: Batching = Batching.ONE,
    limits: dict[str, float] | None = None,
    **script: Any,
) -> None:
    """Make an agent that plays a script."""
    plan = AgentPlan(
        id=agent,
        name=agent.title(),
        batching=batching,
        limits=limits or {},
        extra={"rehearsal": script},
    )
    staff.put_agent(plan, "test")


def team_up(team: str, *agents: str) -> None:
    """Make a team that its first member leads."""
    plan = TeamPlan(id=team, name=team.title(), agents=agents, leader_agent=agents[0])
    staff.put_team(plan, "test")


def send(text: str, agent: str | None = None, *, message_id: str | None = None) -> Accepted:
    """Send what Alice writes."""
    return intake.submit(
        Inbound(
            source="api",
            channel="api",
            sender="Alice",
            sender_id="alice",
            text=text,
            agent=agent,
            message_id=message_id,
        )
    )


@contextmanager
def processor(**environment: str) -> Iterator[Child]:
    """Run a real processor with short waits."""
    with Child("process_queue", environment=IN_A_HURRY | environment) as child:
        yield child


def settled() -> bool:
    """Say whether every message has come to its end."""
    return not Message.objects.filter(status__in=["pending", "processing"]).exists()


def workspace(agent: str) -> Path:
    """Return where an agent works."""
    return Path(settings.TINYOFFICE.workspace) / agent


def at_work(agent: str) -> set[int]:
    """Return the processes of an agent's runs."""
    return living_in(workspace(agent))


def runs(agent: str) -> list[Run]:
    """Return an agent's runs in order."""
    return list(Run.objects.filter(agent=agent).order_by("id"))
