"""What happens to one claim: the agent's world is read, its program asked, its answer sorted."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from agents_app import jobs, prompts, replies, teams, workspaces
from agents_app import roster as rosters
from agents_app.invocation import invoke
from agents_app.marks import mark_of
from agents_app.models import Agent
from agents_app.providers import PROVIDERS
from agents_app.providers.base import Invocation, Provider
from agents_app.roster import Roster
from agents_app.shepherds import Nursery
from agents_app.subprocesses import Limits
from queue_app.batches import Batching
from queue_app.connections import tried_twice
from queue_app.faults import ErrorClass, Fault
from queue_app.limits import legible
from queue_app.models import Job, Message
from queue_app.progress import Report
from queue_app.results import RunFailed
from queue_app.shepherd import trees
from queue_app.values import Claim, HeldMessage, Outcome, Usage
from tinyoffice import preferences
from tinyoffice.conf import Conf

logger = logging.getLogger(__name__)

# Whom the sender of a message may reach; None for everybody.
Reach = Callable[[HeldMessage], Collection[str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All that is needed to ask, read before the program starts."""

    provider: Provider
    invocation: Invocation
    limits: Limits
    roster: Roster
    recent: tuple[teams.Exchange, ...]


class OfficeHandler:
    """Asks the agent whose lane was claimed."""

    def __init__(self, conf: Conf, reach: Reach) -> None:
        self.conf = conf
        self.reach = reach
        modules = [provider.module for provider in PROVIDERS.values() if provider.module]
        self.nursery = Nursery(*modules)

    def batching(self, agent: str) -> Batching:
        """Return how the agent likes its mail."""
        found = Agent.objects.filter(pk=agent).values_list("batching", flat=True).first()
        return Batching(found or Batching.TOGETHER)

    async def handle(self, claim: Claim, report: Report) -> Outcome:
        """Ask, and return what the answer leads to; raise RunFailed with the fault."""
        question = await asyncio.to_thread(tried_twice, self._prepare, claim)
        reply = await invoke(
            question.provider, question.invocation, question.limits, report, self.nursery.start
        )
        return await asyncio.to_thread(
            tried_twice, self._outcome, claim, question, reply.text, reply.usage
        )

    async def do_job(self, job: Job) -> str:
        """Do a job as a child process; return what went wrong, or nothing."""
        return await jobs.do(job)

    def end_lost(self, run_id: int) -> None:
        """End what a lost run left on this machine."""
        trees.end_run(mark_of(run_id))

    def _prepare(self, claim: Claim) -> Question:
        primary = claim.primary
        agent = Agent.objects.filter(pk=primary.agent).first()
        if agent is None:
            raise _refused(f"There is no agent '{primary.agent}' any more.")
        provider = PROVIDERS.get(agent.provider)
        if provider is None:
            known = ", ".join(PROVIDERS)
            raise RunFailed(
                Fault(
                    error_class=ErrorClass.MISSING,
                    message=f"@{agent.pk} wants the provider '{agent.provider}', which is not one of: {known}.",
                )
            )
        return Question(
            provider=provider,
            invocation=self._invocation(claim, agent),
            limits=self._limits(agent),
            roster=rosters.load().within(self.reach(primary)),
            recent=tuple(teams.recent_exchanges(primary.conversation_id)),
        )

    def _invocation(self, claim: Claim, agent: Agent) -> Invocation:
        mark = mark_of(claim.run_id)
        try:
            workspace = workspaces.ensure(self.conf.workspace, agent.pk, agent.working_directory)
        except (OSError, RuntimeError) as error:
            raise RunFailed(
                Fault(
                    error_class=ErrorClass.MISSING,
                    message=f"The workspace of @{agent.pk} cannot be used: {error}.",
                )
            ) from error
        return Invocation(
            agent=agent.pk,
            model=agent.model,
            workspace=workspace,
            prompt=prompts.prompt(claim.messages, mark, _earlier(claim)),
            mark=mark,
            attempt=claim.primary.retry_count + 1,
            script=agent.extra.get("rehearsal", {}),
            environment={"PATH": os.environ.get("PATH", os.defpath), "TINYAGI_AGENT_ID": agent.pk},
        )

    def _limits(self, agent: Agent) -> Limits:
        conf = self.conf.processor
        return Limits(
            wall=float(agent.limits.get("run_seconds", conf.run_for / 1000)),
            silence=float(agent.limits.get("silence_seconds", conf.silent_for / 1000)),
            after_result=conf.after_result / 1000,
        )

    def _outcome(self, claim: Claim, question: Question, text: str, usage: Usage) -> Outcome:
        handed = teams.follow_ups(text, claim.messages, question.roster, question.recent)
        if handed.ignored:
            logger.info("ignored tags run=%d names=%s", claim.run_id, ",".join(handed.ignored))
        shelf = replies.Shelf(
            roots=(question.invocation.workspace.resolve(), (self.conf.home / "files").resolve()),
            resolve=_real_file,
        )
        signed = preferences.channels("signed_channels", default=replies.PLATFORMS)
        answers = replies.answers(text, claim.messages, shelf, signed=signed)
        return Outcome(
            text=legible(text),
            responses=answers.responses,
            follow_ups=handed.follow_ups,
            posts=[*handed.posts, *answers.posts],
            stopped=handed.stopped,
            usage=usage,
        )


def _refused(message: str) -> RunFailed:
    return RunFailed(Fault(error_class=ErrorClass.REFUSED, message=message))


def _earlier(claim: Claim) -> prompts.Earlier | None:
    """Return how the attempt before ended, so that the agent looks before it repeats."""
    if claim.primary.retry_count == 0:
        return None
    row = Message.objects.only("error_class", "last_error").get(pk=claim.primary.id)
    return prompts.Earlier(error_class=row.error_class or "failed", error=row.last_error or "")


def _real_file(path: Path) -> Path | None:
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return found if found.is_file() else None
