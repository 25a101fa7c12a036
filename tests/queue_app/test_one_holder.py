"""R3: one holder per lane, whatever is claimed, stalled, lost, ended late or ended twice."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from queue_app import queue
from queue_app.batches import Batching
from queue_app.faults import ErrorClass, Fault
from queue_app.holders import Holder
from queue_app.models import Conversation, Lane, Message, Response, Run
from queue_app.values import Claim
from tests import factories

HOUR = 3_600_000
AGENTS = ["coder", "writer"]
HOLDERS = [
    Holder(name=f"other/processor-{number}", role="processor", host="other", pid=number, lock=-1)
    for number in range(3)
]


@dataclass
class Model:
    """What must be true of one agent: who holds its lane, and what happened to its messages."""

    live: Claim | None = None
    stale: list[Claim] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    sent: int = 0
    completed: int = 0


class Histories(RuleBasedStateMachine):
    """Random histories of two agents' lanes and three holders."""

    def __init__(self) -> None:
        super().__init__()
        for table in (Message, Response, Lane, Run, Conversation):
            table.objects.all().delete()
        self.now = factories.NOW
        self.models = {agent: Model() for agent in AGENTS}

    def later(self) -> int:
        self.now += 2 * HOUR  # past every wait and block
        return self.now

    @rule(agent=st.sampled_from(AGENTS), count=st.integers(1, 3))
    def enqueue(self, agent: str, count: int) -> None:
        for _ in range(count):
            model = self.models[agent]
            factories.enqueue(f"{agent} {model.sent}", agent, now=self.now)
            model.sent += 1

    @rule(
        agent=st.sampled_from(AGENTS),
        holder=st.sampled_from(HOLDERS),
        batching=st.sampled_from(list(Batching)),
    )
    def claim(self, agent: str, holder: Holder, batching: Batching) -> None:
        model = self.models[agent]
        waiting = Message.objects.pending().for_agent(agent).exists()
        claimed = queue.claim(queue.lane_of(agent), holder, batching, now=self.later())
        if model.live is not None or not waiting:
            assert claimed is None
            return
        assert claimed is not None
        assert claimed.run_id not in {stale.run_id for stale in model.stale}
        model.live = claimed

    def end(self, agent: str) -> Claim:
        model = self.models[agent]
        live, model.live = model.live, None
        assert live is not None
        model.stale.append(live)
        return live

    def held(self) -> list[str]:
        return [agent for agent, model in self.models.items() if model.live]

    @precondition(held)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        agent = data.draw(st.sampled_from(self.held()))
        live = self.end(agent)
        assert queue.complete(live, factories.answer(live), now=self.now)
        self.models[agent].completed += len(live.messages)
        self.models[agent].order += [row.message for row in live.messages]

    @precondition(held)
    @rule(data=st.data(), error_class=st.sampled_from([ErrorClass.AUTH, ErrorClass.CRASH]))
    def fail(self, data: st.DataObject, error_class: ErrorClass) -> None:
        live = self.end(data.draw(st.sampled_from(self.held())))
        assert queue.fail(live, Fault(error_class=error_class, message="broken"), now=self.now)

    @precondition(held)
    @rule(data=st.data(), lost=st.booleans())
    def lose_or_give_back(self, data: st.DataObject, lost: bool) -> None:
        live = self.end(data.draw(st.sampled_from(self.held())))
        if lost:
            assert queue.lose(live.lane, live.run_id, now=self.now)
        else:
            assert queue.give_back(live, now=self.now)

    @precondition(held)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        live = self.end(data.draw(st.sampled_from(self.held())))
        queue.request_stop(live.run_id, "alice", now=self.now)
        assert queue.end_stopped(live, now=self.now)

    @precondition(lambda self: any(model.stale for model in self.models.values()))
    @rule(data=st.data())
    def a_stale_holder_ends_it_once_more(self, data: st.DataObject) -> None:
        past = [stale for model in self.models.values() for stale in model.stale]
        stale = data.draw(st.sampled_from(past))
        assert not queue.complete(stale, factories.answer(stale), now=self.now)
        assert not queue.fail(
            stale, Fault(error_class=ErrorClass.CRASH, message="late"), now=self.now
        )
        assert not queue.lose(stale.lane, stale.run_id, now=self.now)

    @invariant()
    def one_holder_per_lane_and_every_message_in_one_place(self) -> None:
        for agent, model in self.models.items():
            lane = Lane.objects.filter(name=queue.lane_of(agent)).first()
            assert (lane and lane.run_id) == (model.live.run_id if model.live else None)
            mine = Message.objects.for_agent(agent)
            held = set(mine.processing().values_list("message_id", flat=True))
            assert (
                held == {row.message_id for row in model.live.messages} if model.live else not held
            )
            assert mine.count() == model.sent
            assert mine.filter(status="completed").count() == model.completed
            assert (lane.completed if lane else 0) == model.completed

    @invariant()
    def conversations_count_what_is_open(self) -> None:
        for conversation in Conversation.objects.all():
            rows = Message.objects.filter(conversation_id=conversation.pk)
            assert conversation.open == rows.filter(status__in=["pending", "processing"]).count()

    @invariant()
    def order_is_kept(self) -> None:
        for model in self.models.values():
            numbers = [int(text.split()[1]) for text in model.order]
            assert numbers == sorted(numbers)

    @invariant()
    def no_run_is_left_open(self) -> None:
        live = {model.live.run_id for model in self.models.values() if model.live}
        assert set(Run.objects.filter(finished=None).values_list("pk", flat=True)) == live


@pytest.mark.django_db(transaction=True)
def test_r3_one_holder_per_lane_in_any_history() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=60,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
