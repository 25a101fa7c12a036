"""Long work behind the office: asked for as a row, done by a processor under the job's lane."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from django.db import connection, models, transaction

from queue_app import audit, clock, events, wakeup
from queue_app.errors import UnknownJob
from queue_app.events import NewEvent
from queue_app.masking import mask
from queue_app.models import Job
from queue_app.states import JobStatus, RunOutcome
from queue_app.values import Claim

logger = logging.getLogger(__name__)


def request_job(name: str, arguments: Sequence[str], by: str, *, now: int | None = None) -> int:
    """Move (nothing) → pending for a job; return its id."""
    at = clock.now() if now is None else now
    with transaction.atomic(), connection.cursor() as cursor:
        job = Job.objects.create(
            name=name, arguments=json.dumps(list(arguments)), requested_by=by, created_at=at
        )
        audit.record(by, "request", f"job {job.pk}", now=at, name=name)
        events.record(cursor, [_told(job.pk, name, JobStatus.PENDING)], now=at)
        transaction.on_commit(wakeup.ring)
    return job.pk


def start_job(job_id: int, claim: Claim, *, now: int | None = None) -> bool:
    """Move pending → running under the job's lane; False when it no longer waits."""
    at = clock.now() if now is None else now
    waiting = Job.objects.filter(pk=job_id, status=JobStatus.PENDING)
    return _move(waiting, JobStatus.RUNNING, at, run_id=claim.run_id, started=at)


def job_progress(job_id: int, done: int, total: int | None, detail: str = "") -> bool:
    """Keep how far a running job is; False when it was asked to stop or no longer runs."""
    running = Job.objects.filter(pk=job_id, status=JobStatus.RUNNING, stop_by__isnull=True)
    return bool(running.update(done=done, total=total, detail=detail))


def end_job(claim: Claim, status: JobStatus, error: str = "", *, now: int | None = None) -> bool:
    """Move running → done, failed or stopped; False when it was ended before."""
    at = clock.now() if now is None else now
    mine = Job.objects.filter(run_id=claim.run_id, status=JobStatus.RUNNING)
    return _move(mine, status, at, finished=at, error=mask(error) or None)


def stop_job(job_id: int, by: str, *, now: int | None = None) -> None:
    """Ask for a job to stop; one that waits is stopped at once. Raise UnknownJob when it has ended."""
    at = clock.now() if now is None else now
    with transaction.atomic():
        waiting = Job.objects.filter(pk=job_id, status=JobStatus.PENDING)
        if not _move(waiting, JobStatus.STOPPED, at, finished=at, stop_by=by):
            running = Job.objects.filter(pk=job_id, status=JobStatus.RUNNING)
            if not running.update(stop_by=by):
                raise UnknownJob(job_id)
        audit.record(by, "stop", f"job {job_id}", now=at)
        transaction.on_commit(wakeup.ring)


def leave(run_id: int, outcome: RunOutcome, now: int) -> list[NewEvent]:
    """Move running → pending when the processor gave the lane back, → failed when it was lost."""
    running = Job.objects.filter(run_id=run_id, status=JobStatus.RUNNING)
    job = running.first()
    if job is None:
        return []
    if outcome is RunOutcome.GIVEN_BACK:
        running.update(status=JobStatus.PENDING, run_id=None, started=None)
        return [_told(job.pk, job.name, JobStatus.PENDING)]
    error = "The processor that did it died or stood still; ask for it again."
    running.update(status=JobStatus.FAILED, finished=now, error=error)
    return [_told(job.pk, job.name, JobStatus.FAILED)]


def _move(jobs: models.QuerySet[Job], status: JobStatus, now: int, **columns: object) -> bool:
    with transaction.atomic(), connection.cursor() as cursor:
        job = jobs.first()
        if job is None or not jobs.update(status=status, **columns):
            return False
        events.record(cursor, [_told(job.pk, job.name, status)], now=now)
    logger.info("job=%d name=%s status=%s", job.pk, job.name, status)
    return True


def _told(job_id: int, name: str, status: JobStatus) -> NewEvent:
    return NewEvent("job_changed", None, None, {"jobId": job_id, "name": name, "status": status})
