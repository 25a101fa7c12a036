"""R8 and R9: a processor that is asked to end, one that is killed, and runs that people stop."""

from __future__ import annotations

import pytest

from queue_app import queue
from queue_app.errors import UnknownRun
from queue_app.models import Lane, Message, Response, Run
from queue_app.shepherd import trees
from tests.agents_app import office
from tests.factories import row
from tests.processes import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]


def running_run(agent: str) -> int:
    return Run.objects.get(agent=agent, finished__isnull=True).pk


def test_r8_asked_to_end_it_lets_short_runs_finish_and_gives_long_ones_back() -> None:
    office.hire("quick", delay=0.5, answer="done")
    office.hire("slow", delay=600)
    short, long = office.send("go", "quick"), office.send("go", "slow")

    with office.processor() as processor:
        processor.wait_until(lambda: office.at_work("quick") and office.at_work("slow"))
        processor.ask_to_end()
        processor.ask_to_end()
        code = processor.process.wait(PATIENCE)

    assert code == 0
    assert row(short.message_id).status == "completed"
    returned = row(long.message_id)
    assert (returned.status, returned.retry_count, returned.run_id) == ("pending", 0, None)
    assert [run.outcome for run in office.runs("slow")] == ["given_back"]
    assert not Lane.objects.filter(run_id__isnull=False).exists()
    assert not office.at_work("slow")


def test_r8_asked_again_while_it_ends_a_stubborn_run_it_still_leaves_nothing() -> None:
    office.hire("slow", survivors=1, delay=600)
    office.send("go", "slow")

    with office.processor() as processor:
        processor.wait_until(lambda: len(office.at_work("slow")) == 2)
        processor.ask_to_end()
        processor.wait_until(lambda: len(office.at_work("slow")) == 1)  # one ignores the request
        processor.ask_to_end()
        code = processor.process.wait(PATIENCE)

    assert code == 0
    assert not office.at_work("slow")
    assert Message.objects.get().status == "pending"


def test_r8_what_a_killed_processor_ran_is_run_again_and_nothing_of_the_first_run_is_left() -> None:
    office.hire("slow", survivors=2, silence=True, until_attempt=1, answer="done")
    sent = office.send("go", "slow")

    with office.processor() as processor:
        processor.wait_until(lambda: len(office.at_work("slow")) == 3)
        first = office.at_work("slow") | trees.below([processor.process.pid])
        processor.kill()
    with office.processor() as restarted:
        restarted.wait_until(office.settled)

    lost, again = office.runs("slow")
    assert (lost.outcome, again.outcome, again.attempt) == ("lost", "completed", 2)
    assert row(sent.message_id).retry_count == 1
    assert Response.objects.get(message_id=sent.message_id).message == "done"
    assert not {pid for pid in first if trees.since(pid)}


def test_a_stopped_run_is_over_only_when_all_its_processes_are_gone() -> None:
    office.hire("slow", survivors=1, silence=True)
    office.hire("ben", answer="yes")
    stopped, kept = office.send("one", "slow"), office.send("two", "slow")

    with office.processor() as processor:
        processor.wait_until(lambda: len(office.at_work("slow")) == 2)
        first = office.at_work("slow")
        run_id = running_run("slow")
        queue.pause("slow", "Alice")
        queue.request_stop(run_id, "Alice")
        while Run.objects.filter(pk=run_id, finished__isnull=True).exists():
            sent = office.send("are you there?", "ben")  # each wakes the processor again
            processor.wait_until(lambda sent=sent: row(sent.message_id).status == "completed")

    assert not {pid for pid in first if trees.since(pid)}
    dead = row(stopped.message_id)
    assert (dead.status, dead.last_error) == ("dead", "Stopped by Alice.")
    assert row(kept.message_id).status == "pending"
    assert Response.objects.filter(message_id=stopped.message_id).count() == 1


def test_runs_that_end_while_they_are_asked_to_stop_do_not_end_the_processor() -> None:
    office.hire("quick", answer="done")

    with office.processor() as processor:
        for number in range(100):
            sent = office.send(f"message {number}", "quick")
            processor.wait_until(lambda sent=sent: row(sent.message_id).status != "pending")
            for run_id in Run.objects.filter(finished__isnull=True).values_list("pk", flat=True):
                stop_if_running(run_id)
        processor.wait_until(office.settled)

    assert not Lane.objects.filter(run_id__isnull=False).exists()
    assert Response.objects.count() == 100


def stop_if_running(run_id: int) -> None:
    try:
        queue.request_stop(run_id, "Alice")
    except UnknownRun:
        return  # it ended by itself first


def test_a_cancelled_message_is_never_run_and_a_paused_agent_waits() -> None:
    office.hire("ada", answer="done")
    queue.pause("ada", "Alice")
    unwanted, wanted = office.send("one", "ada"), office.send("two", "ada")
    office.hire("ben", answer="done")

    with office.processor() as processor:
        other = office.send("three", "ben")
        processor.wait_until(lambda: row(other.message_id).status == "completed")
        assert row(wanted.message_id).status == "pending"
        queue.cancel(row(unwanted.message_id).pk, "Alice")
        queue.resume("ada", "Alice")
        processor.wait_until(office.settled)

    assert row(unwanted.message_id).last_error == "Cancelled by Alice."
    assert row(wanted.message_id).status == "completed"
    assert len(office.runs("ada")) == 1
