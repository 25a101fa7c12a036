"""Whoever between the processor and a program is killed, the message is answered and nothing is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from queue_app.models import Run
from queue_app.shepherd import trees
from tests.agents_app import office
from tests.factories import row
from tests.processes import Child

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]


def nursery_of(processor: Child) -> int:
    (found,) = [
        pid
        for pid in trees.below([processor.process.pid])
        if b"shepherd.nursery" in Path(f"/proc/{pid}/cmdline").read_bytes()
        and parent_of(pid) == processor.process.pid
    ]
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def test_a_run_whose_shepherd_is_killed_is_tried_again() -> None:
    office.hire("ada", silence=True, until_attempt=1, answer="done")
    sent = office.send("go", "ada")

    with office.processor() as processor:
        processor.wait_until(lambda: office.at_work("ada"))
        (program,) = office.at_work("ada")
        os.kill(parent_of(program), signal.SIGKILL)
        processor.wait_until(office.settled)

    assert row(sent.message_id).status == "completed"
    first, second = office.runs("ada")
    assert (first.outcome, first.error_class, second.outcome) == ("failed", "crash", "completed")
    assert first.error == "The shepherd of the run was killed, and the run with it."
    assert not trees.since(program)


def test_a_nursery_that_is_killed_is_started_anew() -> None:
    office.hire("ada", delay=0.5, answer="done")
    before = office.send("go", "ada")

    with office.processor() as processor:
        processor.wait_until(lambda: office.at_work("ada"))
        killed = nursery_of(processor)
        os.kill(killed, signal.SIGKILL)
        processor.wait_until(lambda: row(before.message_id).status == "completed")
        after = office.send("again", "ada")
        processor.wait_until(office.settled)
        assert nursery_of(processor) != killed

    assert row(after.message_id).status == "completed"
    assert not office.at_work("ada")
    assert Run.objects.filter(finished__isnull=True).count() == 0
