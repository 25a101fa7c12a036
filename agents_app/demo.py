"""The demo company: what a newcomer sees move."""

from __future__ import annotations

from agents_app import intake, staff
from agents_app.intake import Inbound
from agents_app.staff import AgentPlan, TeamPlan

BY = "demo"

AGENTS = (
    AgentPlan(
        id="ada",
        name="Ada",
        extra={
            "rehearsal": {
                "steps": ["Reading the request. ", "Splitting the work. "],
                "pause": 0.5,
                "answer": "Plan: build, then review.\n[@ben: build what was asked: {text}]\n"
                "[@cleo: review Ben's work when it is there]",
            }
        },
    ),
    AgentPlan(
        id="ben",
        name="Ben",
        extra={
            "rehearsal": {
                "steps": ["Writing code. ", "Running tests. ", "All green. "],
                "pause": 0.7,
                "answer": "Built. (This was a rehearsal; nothing was really written.)",
            }
        },
    ),
    AgentPlan(
        id="cleo",
        name="Cleo",
        extra={"rehearsal": {"delay": 1.0, "answer": "Reviewed: looks good."}},
    ),
    AgentPlan(
        id="dora",
        name="Dora",
        extra={"rehearsal": {"fail": "refused", "message": "Dora does not answer such questions."}},
    ),
    AgentPlan(
        id="emil",
        name="Emil",
        extra={"rehearsal": {"fail": "auth", "message": "Emil's key has expired."}},
    ),
)
TEAM = TeamPlan(id="studio", name="Studio", agents=["ada", "ben", "cleo"], leader_agent="ada")
MESSAGES = (
    "@studio Please make a page that says hello",
    "[@ben: what are you working on?] [@cleo: and you?]",
    "@dora Tell me a secret",
    "@emil Are you there?",
)


def set_up() -> list[str]:
    """Make the company, send its messages, and return what to look at, line by line."""
    for plan in AGENTS:
        staff.put_agent(plan, BY)
    staff.put_team(TEAM, BY)
    lines = [f"made @{plan.id}" for plan in AGENTS] + [f"made #{TEAM.id}, led by @ada"]
    for text in MESSAGES:
        accepted = intake.submit(Inbound(source="cli", channel="cli", sender="Demo", text=text))
        lines.append(f"sent {accepted.message_id}: {text}")
    lines.append(
        "Look: `manage.py status` shows @emil blocked; Dead letters holds @dora's message."
    )
    return lines
