"""Every pair of states, tried with every verb of the queue, against the moves that are legal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.apps import apps
from django.conf import settings
from pytest_django import DjangoDbBlocker

from queue_app import holders, queue
from queue_app.errors import QueueError
from queue_app.faults import BLAME
from queue_app.holders import Holder
from queue_app.models import Lane, Message, Response
from queue_app.states import MOVES, RESPONSE_MOVES, MessageStatus, ResponseStatus
from queue_app.values import Claim
from tests import factories
from tests.factories import NOW

# The fixtures below do the work, outside of any test's transaction, and clean up themselves.
pytestmark = pytest.mark.django_db

DAY = 24 * 3_600_000
LATER = NOW + 2 * DAY
GONE = "gone"

# What may be deleted, and from where: completed and acked by pruning, dead by a person.
MESSAGES_MAY_GO = {MessageStatus.COMPLETED, MessageStatus.DEAD}
RESPONSES_MAY_GO = {ResponseStatus.ACKED}


Reached = dict[str, set[str]]  # the states each verb leads to


@contextmanager
def somebody() -> Iterator[Holder]:
    """Give a holder for a while, and take away all rows it worked on."""
    one = holders.become("processor", settings.TINYOFFICE.home)
    try:
        yield one
    finally:
        one.release()
        for model in apps.get_app_config("queue_app").get_models():
            model.objects.all().delete()


class Subject:
    """A message of an agent of its own, brought to a state by the real path."""

    count = 0

    def __init__(self, status: MessageStatus, holder: Holder, attempts: int = 0) -> None:
        Subject.count += 1
        self.agent = f"agent-{Subject.count}"
        self.lane = queue.lane_of(self.agent)
        self.holder = holder
        self.message_id = factories.enqueue(agent=self.agent).message_id
        self.row_id = factories.row(self.message_id).pk
        self.claim = Claim(lane=self.lane, run_id=0, started=NOW)
        for _ in range(attempts):
            self.claim = factories.claim(holder, self.agent, now=NOW + DAY)
            queue.fail(self.claim, factories.fault(), now=NOW)
        self._bring_to(status)
        assert self.status == status

    def _bring_to(self, status: MessageStatus) -> None:
        if status == MessageStatus.PENDING:
            return
        if status == MessageStatus.DEAD:
            queue.cancel(self.row_id, "owner", now=NOW)
            return
        self.claim = factories.claim(self.holder, self.agent, now=NOW + DAY)
        if status == MessageStatus.COMPLETED:
            queue.complete(self.claim, factories.answer(self.claim), now=NOW)

    @property
    def status(self) -> str:
        row = Message.objects.filter(pk=self.row_id).first()
        return str(row.status) if row else GONE

    def repeat(self) -> None:
        factories.enqueue(agent=self.agent, message_id=self.message_id)

    def take(self) -> None:
        queue.claim(self.lane, self.holder, now=LATER)

    def complete(self) -> None:
        if self.claim.messages:
            queue.complete(self.claim, factories.answer(self.claim), now=LATER)

    def stop(self) -> None:
        queue.request_stop(self.claim.run_id, "owner", now=LATER)
        queue.end_stopped(self.claim, now=LATER)

    def expire(self) -> None:
        """Block the agent by another message's run, then let time pass."""
        if self.status == MessageStatus.PENDING:
            claimed = factories.claim(self.holder, self.agent, now=NOW + DAY)
            queue.fail(claimed, factories.fault(next(iter(BLAME))), now=LATER)
        queue.expire_blocked(now=LATER)

    def recover(self) -> None:
        """Take the lane away from the run, as a restore of an older file would."""
        Lane.objects.filter(name=self.lane).update(run_id=None, holder=None)
        queue.recover_stale(now=LATER)


VERBS: dict[str, Callable[[Subject], object]] = {
    "enqueue again": Subject.repeat,
    "claim": Subject.take,
    "complete": Subject.complete,
    "lose": lambda it: queue.lose(it.lane, it.claim.run_id, now=LATER),
    "give_back": lambda it: queue.give_back(it.claim, now=LATER),
    "request_stop and end_stopped": Subject.stop,
    "end_stopped": lambda it: queue.end_stopped(it.claim, now=LATER),
    "cancel": lambda it: queue.cancel(it.row_id, "owner", now=LATER),
    "retry_dead": lambda it: queue.retry_dead(it.row_id, "owner", now=LATER),
    "edit_and_retry": lambda it: queue.edit_and_retry(it.row_id, "x", "owner", now=LATER),
    "discard_dead": lambda it: queue.discard_dead(it.row_id, "owner", now=LATER),
    "expire_blocked": Subject.expire,
    "recover_stale": Subject.recover,
    "prune": lambda it: queue.prune(settings.TINYOFFICE.retention, now=LATER),
    "pause": lambda it: queue.pause(it.agent, "owner", now=LATER),
    "resume": lambda it: queue.resume(it.agent, "owner", now=LATER),
    "unblock": lambda it: queue.unblock(it.lane, now=LATER),
    "beat": lambda it: queue.beat(it.holder),
    **{
        f"fail by {kind}": lambda it, kind=kind: queue.fail(
            it.claim, factories.fault(kind), now=LATER
        )
        for kind in BLAME
    },
}


def reached_from(status: MessageStatus, holder: Holder) -> Reached:
    """Return to which states each verb brings a message; with and without attempts spent."""
    reached: Reached = {name: set() for name in VERBS}
    for name, verb in VERBS.items():
        for attempts in (0, 4):
            subject = Subject(status, holder, attempts)
            try:
                verb(subject)
            except QueueError:
                assert subject.status == status, f"{name} refused and moved"
            reached[name].add(subject.status)
            queue.lose(subject.lane, subject.claim.run_id, now=LATER)
    return reached


@pytest.fixture(scope="module")
def reached(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> dict[MessageStatus, Reached]:
    """Everything that every verb does to a message in every state, tried once for all tests."""
    with django_db_blocker.unblock(), somebody() as holder:
        return {status: reached_from(status, holder) for status in MessageStatus}


@pytest.mark.parametrize("before", MessageStatus)
@pytest.mark.parametrize("after", [*MessageStatus, GONE])
def test_a_message_makes_every_legal_move_and_no_other(
    before: MessageStatus, after: MessageStatus | str, reached: dict[MessageStatus, Reached]
) -> None:
    made_by = {name for name, states in reached[before].items() if after in states}

    legal = (before, after) in MOVES or (after == GONE and before in MESSAGES_MAY_GO)
    if before != after:
        assert bool(made_by) == legal, f"{before} → {after} by {made_by or 'no verb'}"


@pytest.mark.parametrize(
    ("verb", "moves"),
    [
        ("claim", {("pending", "processing")}),
        ("complete", {("processing", "completed")}),
        ("fail by crash", {("processing", "pending"), ("processing", "dead")}),
        ("fail by auth", {("processing", "pending")}),
        ("lose", {("processing", "pending"), ("processing", "dead")}),
        ("recover_stale", {("processing", "pending"), ("processing", "dead")}),
        ("give_back", {("processing", "pending")}),
        ("request_stop and end_stopped", {("processing", "dead")}),
        ("cancel", {("pending", "dead")}),
        ("expire_blocked", {("pending", "dead")}),
        ("retry_dead", {("dead", "pending")}),
        ("edit_and_retry", {("dead", "pending")}),
        ("discard_dead", {("dead", GONE)}),
        ("prune", {("completed", GONE)}),
        ("enqueue again", set()),
        ("pause", set()),
        ("beat", set()),
    ],
)
def test_a_verb_makes_its_own_moves_and_no_other(
    verb: str, moves: set[tuple[str, str]], reached: dict[MessageStatus, Reached]
) -> None:
    made = {
        (before.value, after)
        for before in MessageStatus
        for after in reached[before][verb]
        if after != before
    }

    assert made == moves


class Outgoing:
    """A response of a channel of its own, brought to a state by the real path."""

    count = 0

    def __init__(self, status: ResponseStatus, holder: Holder, attempts: int = 0) -> None:
        Outgoing.count += 1
        self.channel = "web" if status == ResponseStatus.PENDING else "telegram"
        self.lane = f"channel:{Outgoing.count}"
        held = queue.hold(self.lane, holder, now=NOW)
        assert held is not None
        self.claim = held
        self.row_id = queue.respond(factories.new_response(channel=self.channel), now=NOW)
        for _ in range(attempts):
            queue.sending(self.row_id, held)
            queue.undelivered(self.row_id, held, "later", permanent=False, now=NOW)
        self._bring_to(status)
        assert self.status == status
        if status == ResponseStatus.UNKNOWN:
            again = queue.hold(self.lane, holder, now=NOW)
            assert again is not None
            self.claim = again

    def _bring_to(self, status: ResponseStatus) -> None:
        if status == ResponseStatus.PENDING:
            return
        assert queue.sending(self.row_id, self.claim)
        if status == ResponseStatus.ACKED:
            queue.ack(self.row_id, now=NOW)
        if status == ResponseStatus.UNKNOWN:
            queue.lose(self.lane, self.claim.run_id, now=NOW)
        if status == ResponseStatus.DEAD:
            queue.undelivered(self.row_id, self.claim, "refused", permanent=True, now=NOW)

    @property
    def status(self) -> str:
        row = Response.objects.filter(pk=self.row_id).first()
        return str(row.status) if row else GONE


DELIVERIES: dict[str, Callable[[Outgoing], object]] = {
    "sending": lambda it: queue.sending(it.row_id, it.claim),
    "ack": lambda it: queue.ack(it.row_id, now=LATER),
    "undelivered for now": lambda it: queue.undelivered(
        it.row_id, it.claim, "later", permanent=False, now=LATER
    ),
    "undelivered for good": lambda it: queue.undelivered(
        it.row_id, it.claim, "refused", permanent=True, now=LATER
    ),
    "ack_unserved": lambda it: queue.ack_unserved(LATER, now=LATER),
    "lose": lambda it: queue.lose(it.lane, it.claim.run_id, now=LATER),
    "give_back": lambda it: queue.give_back(it.claim, now=LATER),
    "fail": lambda it: queue.fail(it.claim, factories.fault(), now=LATER),
    "prune": lambda it: queue.prune(settings.TINYOFFICE.retention, now=LATER),
}


def delivered_from(status: ResponseStatus, holder: Holder) -> Reached:
    """Return to which states each verb brings a response; with and without attempts spent."""
    reached: Reached = {name: set() for name in DELIVERIES}
    for name, verb in DELIVERIES.items():
        for attempts in (0, 4):
            subject = Outgoing(status, holder, attempts)
            verb(subject)
            reached[name].add(subject.status)
    return reached


@pytest.fixture(scope="module")
def delivered(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> dict[ResponseStatus, Reached]:
    """Everything that every verb does to a response in every state, tried once for all tests."""
    with django_db_blocker.unblock(), somebody() as holder:
        return {status: delivered_from(status, holder) for status in ResponseStatus}


@pytest.mark.parametrize("before", ResponseStatus)
@pytest.mark.parametrize("after", [*ResponseStatus, GONE])
def test_a_response_makes_every_legal_move_and_no_other(
    before: ResponseStatus, after: ResponseStatus | str, delivered: dict[ResponseStatus, Reached]
) -> None:
    made_by = {name for name, states in delivered[before].items() if after in states}

    legal = (before, after) in RESPONSE_MOVES or (after == GONE and before in RESPONSES_MAY_GO)
    if before != after:
        assert bool(made_by) == legal, f"{before} → {after} by {made_by or 'no verb'}"


def test_no_move_leads_out_of_completed_acked_or_back_to_itself() -> None:
    assert not [move for move in MOVES if move[0] == MessageStatus.COMPLETED]
    assert not [move for move in RESPONSE_MOVES if move[0] == ResponseStatus.ACKED]
    assert all(before != after for before, after in [*MOVES, *RESPONSE_MOVES])


def test_every_verb_of_the_queue_was_tried() -> None:
    tried = {word for name in [*VERBS, *DELIVERIES] for word in name.split()}
    moves_nothing = {"hold", "lane_of", "ready_lanes"}
    only_begins = {"enqueue_all", "post_to_room", "respond"}
    of_jobs = {"request_job", "start_job", "job_progress", "end_job", "stop_job"}

    assert set(queue.__all__) - tried == moves_nothing | only_begins | of_jobs
