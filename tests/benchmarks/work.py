"""The work that is timed: the queue's own verbs, as a caller uses them, values included.

A step is one timed act. Lanes are exclusive, so single claims go round a hundred agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from queue_app import queue
from queue_app.batches import MOST_MESSAGES
from queue_app.holders import Holder
from queue_app.values import Claim
from tests import factories
from tests.benchmarks.past import AGENTS, TEXT

ENQUEUE, CLAIM, COMPLETE, CYCLE = "enqueue", "claim", "complete", "full cycle"
TOGETHER = 100
ENQUEUE_MANY = f"enqueue x {TOGETHER}"
CLAIM_MANY = f"claim x {MOST_MESSAGES}"
COMPLETE_MANY = f"complete x {MOST_MESSAGES}"
CYCLE_MANY = f"full cycle x {TOGETHER}"
MEASURES = (ENQUEUE, CLAIM, COMPLETE, CYCLE, ENQUEUE_MANY, CLAIM_MANY, COMPLETE_MANY, CYCLE_MANY)


class Step(NamedTuple):
    """One timed act on so many messages."""

    measure: str
    messages: int
    act: Callable[[], None]


@dataclass(slots=True, kw_only=True)
class Desk:
    """Somebody who sends, takes and answers messages."""

    holder: Holder
    claims: list[Claim] = field(default_factory=list)

    def enqueue(self, agent: str) -> None:
        """Send one message to an agent."""
        queue.enqueue(factories.submission(TEXT, agent))

    def enqueue_many(self, agents: Sequence[str]) -> None:
        """Send as many messages as go into one commit, evenly to the agents."""
        share = TOGETHER // len(agents)
        queue.enqueue_all(
            [factories.submission(TEXT, agent) for agent in agents for _ in range(share)]
        )

    def claim(self, agent: str) -> None:
        """Take what waits for an agent."""
        claimed = queue.claim(queue.lane_of(agent), self.holder)
        assert claimed is not None, f"nothing waits for {agent}"
        self.claims.append(claimed)

    def complete(self) -> None:
        """Answer what was taken first."""
        claimed = self.claims.pop(0)
        assert queue.complete(claimed, factories.answer(claimed, TEXT)), "the claim was lost"

    def cycle(self, agent: str) -> None:
        """Send, take and answer one message."""
        self.enqueue(agent)
        self.claim(agent)
        self.complete()

    def cycle_many(self, agents: Sequence[str]) -> None:
        """Send many messages, then take and answer them agent by agent."""
        self.enqueue_many(agents)
        for agent in agents:
            self.claim(agent)
            self.complete()


def singles(desk: Desk, size: int) -> Iterator[Step]:
    """One message per transaction, each verb apart."""
    agents = AGENTS[:size]
    yield from (Step(ENQUEUE, 1, partial(desk.enqueue, agent)) for agent in agents)
    yield from (Step(CLAIM, 1, partial(desk.claim, agent)) for agent in agents)
    yield from (Step(COMPLETE, 1, desk.complete) for _ in agents)


def cycles(desk: Desk, size: int) -> Iterator[Step]:
    """One message at a time from its arrival to its answer."""
    for number in range(size):
        yield Step(CYCLE, 1, partial(desk.cycle, AGENTS[number % len(AGENTS)]))


def batches(desk: Desk, size: int) -> Iterator[Step]:
    """Many messages per transaction, each verb apart."""
    pairs = _pairs(size)
    busy = [agent for pair in pairs for agent in pair]
    yield from (Step(ENQUEUE_MANY, TOGETHER, partial(desk.enqueue_many, pair)) for pair in pairs)
    yield from (Step(CLAIM_MANY, MOST_MESSAGES, partial(desk.claim, agent)) for agent in busy)
    yield from (Step(COMPLETE_MANY, MOST_MESSAGES, desk.complete) for _ in busy)


def batch_cycles(desk: Desk, size: int) -> Iterator[Step]:
    """Many messages at a time from their arrival to their answer."""
    for pair in _pairs(size):
        yield Step(CYCLE_MANY, TOGETHER, partial(desk.cycle_many, pair))


def _pairs(size: int) -> list[tuple[str, ...]]:
    together = TOGETHER // MOST_MESSAGES
    count = max(1, size // TOGETHER)
    return [AGENTS[first : first + together] for first in range(0, count * together, together)]


BLOCKS = (singles, cycles, batches, batch_cycles)
