"""Whatever happens in whatever order, a conversation counts what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as office
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_app import queue
from queue_app.errors import QueueError
from queue_app.faults import BLAME
from queue_app.holders import Holder
from queue_app.models import AgentMessage, Conversation, Message
from queue_app.values import Claim, Submission
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)

AGENTS = ("coder", "writer", "tester")
FAULTS = sorted(BLAME)


class Story:
    """A queue to which things happen, ten minutes apart; `number` chooses among what is possible."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.now = NOW
        self.claims: list[Claim] = []

    def happen(self, verb: str, number: int) -> None:
        self.now += 600_001
        act: Callable[[int], Any] = getattr(self, verb)
        act(number)

    def enqueue(self, number: int) -> None:
        rows = [factories.new_message("hello", agent) for agent in AGENTS[: number % 3 + 1]]
        queue.enqueue(Submission(source="api", messages=rows), now=self.now)

    def claim(self, number: int) -> None:
        lane = queue.lane_of(AGENTS[number % 3])
        if claimed := queue.claim(lane, self.holder, now=self.now):
            self.claims.append(claimed)

    def complete(self, number: int) -> None:
        if claimed := self._one_of(self.claims, number):
            follow_ups = [
                factories.new_message("go on", agent, hop=claimed.primary.hop + 1)
                for agent in AGENTS[: number % 4]
            ]
            queue.complete(claimed, factories.answer(claimed, follow_ups=follow_ups), now=self.now)

    def fail(self, number: int) -> None:
        if claimed := self._one_of(self.claims, number):
            fault = factories.fault(FAULTS[number % len(FAULTS)])
            queue.fail(claimed, fault, now=self.now)

    def lose(self, number: int) -> None:
        if claimed := self._one_of(self.claims, number):
            queue.lose(claimed.lane, claimed.run_id, now=self.now)

    def give_back(self, number: int) -> None:
        if claimed := self._one_of(self.claims, number):
            queue.give_back(claimed, now=self.now)

    def stop(self, number: int) -> None:
        if claimed := self._one_of(self.claims, number):
            try:
                queue.request_stop(claimed.run_id, "owner", now=self.now)
            except QueueError:
                return
            queue.end_stopped(claimed, now=self.now)

    def cancel(self, number: int) -> None:
        self._decide(queue.cancel, number)

    def retry(self, number: int) -> None:
        self._decide(queue.retry_dead, number)

    def discard(self, number: int) -> None:
        self._decide(queue.discard_dead, number)

    def expire(self, number: int) -> None:
        self.now += 25 * 3_600_000
        queue.expire_blocked(now=self.now)

    def prune(self, number: int) -> None:
        self.now += 25 * 3_600_000
        queue.prune(office.TINYOFFICE.retention, now=self.now)

    def _decide(self, verb: Callable[..., None], number: int) -> None:
        rows = list(Message.objects.order_by("id").values_list("pk", flat=True))
        if (row_id := self._one_of(rows, number)) is None:
            return
        try:
            verb(row_id, "owner", now=self.now)
        except QueueError:
            return

    def _one_of(self, things: list[Any], number: int) -> Any:
        return things[number % len(things)] if things else None


VERBS = [name for name in vars(Story) if not name.startswith("_") and name != "happen"]


def empty_all_tables() -> None:
    for model in apps.get_app_config("queue_app").get_models():
        model.objects.all().delete()


@settings(
    max_examples=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 50)), max_size=25))
def test_open_is_what_waits_or_runs_and_messages_is_all_there_ever_was(
    holder: Holder, happenings: list[tuple[str, int]]
) -> None:
    empty_all_tables()
    story = Story(holder)

    for number in range(3):
        story.happen("enqueue", number)
        story.happen("claim", number)
    for verb, number in happenings:
        story.happen(verb, number)

    for conversation in Conversation.objects.all():
        rows = Message.objects.filter(conversation_id=conversation.pk)
        under_way = rows.filter(status__in=["pending", "processing"])
        ever = AgentMessage.objects.filter(conversation_id=conversation.pk, role="user")
        assert conversation.open == under_way.count()
        assert conversation.messages == ever.count()
