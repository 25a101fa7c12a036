from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import connection

from queue_app import holders, queue
from queue_app.holders import Holder
from queue_app.models import Lane, Run
from queue_app.watch import Heart, Watcher
from tests import factories
from tests.processes import Child

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "agent:coder"
CONF = settings.TINYOFFICE.queue
HOME = settings.TINYOFFICE.home


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


class Watch:
    """A watcher and its clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watcher = Watcher(HOME, CONF, self.clock)

    def look_after(self, seconds: float) -> int:
        self.clock.seconds += seconds
        return self.watcher.look()


def elsewhere() -> Holder:
    """A holder on a host whose lock files cannot be seen from here."""
    return Holder(name="elsewhere/processor-1-abc", role="processor", host="x", pid=1, lock=-1)


@pytest.mark.concurrency
def test_a_killed_holders_lane_is_given_back_at_the_first_look() -> None:
    accepted = factories.enqueue(now=1)
    watch = Watch()

    with Child("hold_and_wait", "coder", "no") as child:
        run_id = int(child.line().removeprefix("claimed "))
        assert watch.look_after(0) == 0
        child.kill()
        assert watch.look_after(0) == 1

    row = factories.row(accepted.message_id)
    assert (row.status, row.retry_count, row.error_class) == ("pending", 1, "lost")
    assert Run.objects.get(pk=run_id).outcome == "lost"
    lane = Lane.objects.get()
    assert (lane.run_id, lane.holder, lane.blocked_until) == (None, None, None)
    assert watch.look_after(0) == 0


def test_all_lanes_of_a_holder_that_let_go_of_its_lock_are_given_back_at_once() -> None:
    ended = holders.become("processor", HOME)
    factories.enqueue()
    factories.claim(ended)
    assert queue.hold("channel:telegram", ended) is not None
    watch = Watch()
    assert watch.look_after(0) == 0

    ended.release()

    assert watch.look_after(0) == 2


def test_a_holder_that_stands_still_loses_its_lane_after_twenty_seconds(holder: Holder) -> None:
    accepted = factories.enqueue()
    factories.claim(holder)
    watch = Watch()

    assert [watch.look_after(5) for _ in range(5)] == [0, 0, 0, 0, 1]

    assert factories.row(accepted.message_id).retry_count == 1
    assert Lane.objects.get().run_id is None
    assert watch.look_after(5) == 0


def test_a_holder_that_beats_keeps_its_lane(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    watch = Watch()

    for _ in range(20):
        assert watch.look_after(5) == 0
        queue.beat(holder)

    assert queue.complete(claimed, factories.answer(claimed))


def test_a_beat_at_the_last_moment_starts_the_wait_anew(holder: Holder) -> None:
    queue.hold("job:archive", holder)
    watch = Watch()
    assert [watch.look_after(5) for _ in range(4)] == [0, 0, 0, 0]

    queue.beat(holder)

    assert [watch.look_after(5) for _ in range(5)] == [0, 0, 0, 0, 1]


def test_a_lane_that_was_taken_anew_is_watched_anew(holder: Holder) -> None:
    first = queue.hold("job:archive", holder)
    assert first is not None
    watch = Watch()
    assert [watch.look_after(5) for _ in range(4)] == [0, 0, 0, 0]

    queue.give_back(first)
    queue.hold("job:archive", holder)

    assert [watch.look_after(5) for _ in range(5)] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("asleep", [3_600.0, 10_000_000.0])
def test_a_watchers_own_sleep_counts_as_one_look(asleep: float, holder: Holder) -> None:
    queue.hold("job:archive", holder)
    watch = Watch()
    assert watch.look_after(5) == 0

    assert [watch.look_after(asleep) for _ in range(4)] == [0, 0, 0, 1]


def test_many_quick_looks_do_not_make_time_pass(holder: Holder) -> None:
    queue.hold("job:archive", holder)
    watch = Watch()

    assert [watch.look_after(0.01) for _ in range(200)] == [0] * 200


def test_the_time_on_the_wall_plays_no_part(holder: Holder) -> None:
    queue.hold("job:archive", holder, now=1)
    queue.hold("job:rollups", holder, now=factories.NOW * 100)

    assert Watch().look_after(5) == 0


def test_a_holder_of_another_host_is_never_declared_gone_by_its_lock() -> None:
    assert queue.hold("job:archive", elsewhere()) is not None
    watch = Watch()

    assert [watch.look_after(5) for _ in range(5)] == [0, 0, 0, 0, 1]


def test_only_the_lanes_that_stand_still_are_given_back(holder: Holder) -> None:
    queue.hold("job:here", holder)
    queue.hold("job:there", elsewhere())
    watch = Watch()

    looks = []
    for _ in range(6):
        looks.append(watch.look_after(5))
        queue.beat(holder)

    assert sum(looks) == 1
    assert Lane.objects.get(run_id__isnull=False).name == "job:here"


def test_two_watchers_give_a_lane_back_once(holder: Holder) -> None:
    ended = holders.become("processor", HOME)
    accepted = factories.enqueue()
    factories.claim(ended)
    ended.release()

    assert [Watch().look_after(0), Watch().look_after(0)] == [1, 0]

    assert factories.row(accepted.message_id).retry_count == 1


def test_a_heart_beats_on_all_lanes_of_its_holder(holder: Holder) -> None:
    queue.hold("job:archive", holder)
    queue.hold("job:rollups", holder)
    heart = Heart(holder, CONF, lambda: None)

    heart.beat()
    heart.beat()

    assert set(Lane.objects.values_list("beat", flat=True)) == {3}


@contextmanager
def nobody_can_write() -> Iterator[None]:
    """Hold the lanes from another connection, and let this one wait only a moment for them."""
    other = connection.copy()
    with other.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("BEGIN IMMEDIATE")
        else:
            cursor.execute("BEGIN")
            cursor.execute("SELECT name FROM lanes FOR UPDATE")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
            other.close()


def be_impatient() -> None:
    quickly = (
        "PRAGMA busy_timeout = 20" if connection.vendor == "sqlite" else "SET lock_timeout = 20"
    )
    with connection.cursor() as cursor:
        cursor.execute(quickly)


class Patient:
    """A heart whose beats are made by hand, and how often it said that it starves."""

    def __init__(self, holder: Holder) -> None:
        self.clock = Clock()
        self.starved = 0
        self.heart = Heart(holder, CONF, self.starve, self.clock)

    def starve(self) -> None:
        self.starved += 1

    def beat_after(self, seconds: float) -> int:
        self.clock.seconds += seconds
        be_impatient()
        self.heart.beat()
        connection.close()
        return self.starved


def test_a_heart_that_cannot_beat_for_fifteen_seconds_says_so(holder: Holder) -> None:
    queue.hold("job:archive", holder)
    patient = Patient(holder)

    with nobody_can_write():
        assert patient.beat_after(5) == 0
        assert patient.beat_after(9.9) == 0
        assert patient.beat_after(0.1) == 1
        assert patient.beat_after(5) == 2

    assert Lane.objects.get().beat == 1


def test_a_heart_that_could_beat_again_starts_anew(holder: Holder) -> None:
    queue.hold("job:archive", holder)
    patient = Patient(holder)

    with nobody_can_write():
        assert patient.beat_after(14) == 0
    assert patient.beat_after(0) == 0
    with nobody_can_write():
        assert patient.beat_after(14) == 0
        assert patient.beat_after(1) == 1

    assert Lane.objects.get().beat == 2


def test_a_heart_beats_from_a_thread_of_its_own_until_it_is_stopped(holder: Holder) -> None:
    queue.hold("job:archive", holder)
    beats: list[int] = []
    enough = threading.Event()

    class Counted(Heart):
        def beat(self) -> None:
            super().beat()
            beats.append(threading.get_ident())
            if len(beats) == 3:
                enough.set()

    heart = Counted(holder, CONF, fail_loudly)
    heart.every = 0.001
    heart.start()
    assert enough.wait(20)
    heart.stop()

    assert not heart.thread.is_alive()
    assert Lane.objects.get().beat == 1 + len(beats)
    assert set(beats) == {heart.thread.ident}


def fail_loudly() -> None:
    raise AssertionError("it starved")
