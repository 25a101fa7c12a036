"""Jobs are rows that a processor does as child processes."""

from __future__ import annotations

import json

import pytest

from queue_app import queue
from queue_app.models import Event, Job, Lane
from queue_app.shepherd import trees
from tests.agents_app import office

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]


def ended(job_id: int) -> bool:
    return Job.objects.get(pk=job_id).status not in ("pending", "running")


def lanes_are_free() -> bool:
    return not Lane.objects.filter(run_id__isnull=False).exists()


def test_a_job_that_was_asked_for_is_done() -> None:
    with office.processor() as processor:
        job_id = queue.request_job("maintain", [], "test")
        processor.wait_until(lambda: ended(job_id) and lanes_are_free())

    job = Job.objects.get(pk=job_id)
    assert (job.status, job.error) == ("done", None)
    told = Event.objects.filter(type="job_changed").order_by("id").values_list("data", flat=True)
    assert [json.loads(data)["status"] for data in told] == ["pending", "running", "done"]


def test_a_job_nobody_knows_fails_with_a_sentence() -> None:
    with office.processor() as processor:
        job_id = queue.request_job("dance", [], "test")
        processor.wait_until(lambda: ended(job_id))

    job = Job.objects.get(pk=job_id)
    assert job.status == "failed"
    assert job.error == "There is no job 'dance'; there are: backup, maintain."


def test_a_job_whose_command_fails_says_what_the_command_said() -> None:
    with office.processor() as processor:
        job_id = queue.request_job("maintain", ["--no-such-option"], "test")
        processor.wait_until(lambda: ended(job_id))

    job = Job.objects.get(pk=job_id)
    assert job.status == "failed"
    assert "--no-such-option" in str(job.error)


def test_two_jobs_of_a_kind_run_one_after_the_other() -> None:
    first, second = (queue.request_job("maintain", [], "test") for _ in range(2))

    with office.processor() as processor:
        processor.wait_until(lambda: ended(first) and ended(second))

    one, two = Job.objects.order_by("id")
    assert one.finished <= two.started


def test_a_job_that_is_stopped_ends_with_its_process() -> None:
    with office.processor() as processor:
        job_id = queue.request_job("maintain", [], "test")
        processor.wait_until(lambda: Job.objects.get(pk=job_id).status == "running")
        queue.stop_job(job_id, "Alice")
        processor.wait_until(lambda: ended(job_id) and lanes_are_free())
        processor.wait_until(
            lambda: trees.below([processor.process.pid]) == {processor.process.pid}
        )

    job = Job.objects.get(pk=job_id)
    assert (job.status, job.stop_by, job.error) == ("stopped", "Alice", None)
