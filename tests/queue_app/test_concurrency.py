"""Several processors at once, and a long line."""

from __future__ import annotations

from collections import defaultdict

import pytest

from queue_app import queue
from queue_app.models import Lane, Message, Response
from tests import factories
from tests.processes import Child, children

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

PROCESSES, MESSAGES, AGENTS = 6, 3_000, 20


def fill(count: int, agents: int) -> None:
    for start in range(0, count, 500):
        some = range(start, min(start + 500, count))
        queue.enqueue_all(
            [factories.submission(f"m{number}", f"a{number % agents}") for number in some], now=1
        )


def test_six_processes_share_three_thousand_messages_without_a_double_or_a_lock_error() -> None:
    fill(MESSAGES, AGENTS)

    with children(PROCESSES, "drain", AGENTS, "one") as processors:
        for processor in processors:
            assert processor.line() == "ready"
        for processor in processors:
            processor.go()
        # A `database is locked` would end its process with a traceback and fail here.
        told = [line.split() for processor in processors for line in processor.lines()]

    runs = sorted((lane, int(run), text) for lane, run, text in told)
    by_lane = defaultdict(list)
    for lane, _, text in runs:
        by_lane[lane].append(int(text[1:]))
    assert len(runs) == MESSAGES
    assert len({text for _, _, text in runs}) == MESSAGES
    assert all(numbers == sorted(numbers) for numbers in by_lane.values())
    assert Message.objects.filter(status="completed").count() == MESSAGES
    assert Response.objects.count() == MESSAGES
    assert sum(Lane.objects.values_list("completed", flat=True)) == MESSAGES


def test_forty_thousand_waiting_for_one_agent_start_and_drain() -> None:
    fill(40_000, 1)

    with Child("drain", 1, "together", 0) as processor:
        assert processor.line() == "ready"
        processor.go()
        told = [line.split() for line in processor.lines()]

    numbers = [int(text[1:]) for _, _, *texts in told for text in texts]
    assert numbers == list(range(40_000))
    assert max(len(texts) for _, _, *texts in told) == 50
    assert not Message.objects.pending().exists()
