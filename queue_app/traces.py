"""The whole story of a conversation: who asked whom, how long it waited and ran, what it cost, how it ended.

Read from histories and runs, which outlive the pruning of messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from queue_app.models import AgentMessage, Conversation, Message, Run, RunMessage

GONE = "gone"  # discarded, or pruned before it was ever run


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run that was given the message."""

    run_id: int
    attempt: int
    started: int
    wait_ms: int | None
    run_ms: int | None
    outcome: str | None
    error_class: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    together_with: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One message of the conversation and what became of it."""

    message_id: str
    agent: str
    sender: str
    asked_at: int
    text: str
    parent_id: str | None
    hop: int
    state: str
    answer: str | None
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A conversation, step by step, in the order it was asked."""

    conversation_id: str
    person: str
    team: str | None
    state: str
    open: int
    cost: float
    steps: tuple[Step, ...]


def trace(conversation_id: str) -> Trace | None:
    """Return the whole story of a root message, or None if there is no such conversation."""
    conversation = Conversation.objects.filter(pk=conversation_id).first()
    if conversation is None:
        return None
    lines = list(AgentMessage.objects.filter(conversation_id=conversation_id).order_by("id"))
    return Trace(
        conversation_id=conversation_id,
        person=conversation.person,
        team=conversation.team,
        state=conversation.state,
        open=conversation.open,
        cost=conversation.cost,
        steps=tuple(_steps(lines)),
    )


def _steps(lines: Sequence[AgentMessage]) -> list[Step]:
    questions = [line for line in lines if line.role == "user"]
    answers = {line.message_id: line.content for line in lines if line.role == "assistant"}
    message_ids = [line.message_id for line in questions]
    live = {row.message_id: row for row in Message.objects.filter(message_id__in=message_ids)}
    given = list(RunMessage.objects.filter(message_id__in=message_ids))
    attempts = _attempts(given)
    origins = {row.message_id: (row.parent_id, row.hop) for row in given}
    steps = []
    for line in questions:
        row = live.get(line.message_id)
        parent_id, hop = (
            (row.parent_id, row.hop) if row else origins.get(line.message_id, (None, 0))
        )
        runs = tuple(attempts[line.message_id])
        steps.append(
            Step(
                message_id=line.message_id,
                agent=line.agent_id,
                sender=line.sender,
                asked_at=line.created_at,
                text=line.content,
                parent_id=parent_id,
                hop=hop,
                state=row.status if row else _last_outcome(runs),
                answer=answers.get(line.message_id),
                attempts=runs,
            )
        )
    return steps


def _attempts(given: Sequence[RunMessage]) -> dict[str, list[Attempt]]:
    runs = Run.objects.in_bulk([row.run_id for row in given])
    batches: dict[int, list[str]] = defaultdict(list)
    for row in RunMessage.objects.filter(run_id__in=runs).order_by("id"):
        batches[row.run_id].append(row.message_id)
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    for row in sorted(given, key=lambda row: row.run_id):
        run = runs[row.run_id]
        others = tuple(other for other in batches[row.run_id] if other != row.message_id)
        attempts[row.message_id].append(
            Attempt(
                run_id=run.pk,
                attempt=run.attempt,
                started=run.started,
                wait_ms=run.wait_ms,
                run_ms=run.run_ms,
                outcome=run.outcome,
                error_class=run.error_class,
                error=run.error,
                input_tokens=run.input_tokens,
                output_tokens=run.output_tokens,
                cost=run.cost,
                together_with=others,
            )
        )
    return attempts


def _last_outcome(runs: Sequence[Attempt]) -> str:
    return str(runs[-1].outcome) if runs else GONE
