"""What a handler's work leads to: the one place where a run's result becomes its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
)

from queue_app import queue
from queue_app.faults import ErrorClass, Fault
from queue_app.states import JobStatus
from queue_app.values import NOTHING_USED, Claim, Outcome, Usage
from tinyoffice.errors import TinyOfficeError

logger = logging.getLogger(__name__)

TRIES = 5
PAUSE = 0.5


class RunFailed(Exception):
    """A run failed, and this is whose fault it was."""

    def __init__(self, fault: Fault, usage: Usage = NOTHING_USED) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.usage = usage


class NoEndWritten(TinyOfficeError):
    """The database takes nothing, so a run's end could not be kept."""

    code = "no_end_written"


def write_end(claim: Claim, handled: asyncio.Task[Outcome], stopped: bool) -> bool:
    """Write the end of a run whose handler is done; False if the claim was lost meanwhile."""
    return _insist(claim, lambda: _end(claim, handled, stopped))


def write_job_end(claim: Claim, done: asyncio.Task[str], stopped: bool) -> bool:
    """Write the end of a job; one that was interrupted by the processor's own end waits again."""
    return _insist(claim, lambda: _end_job(claim, done, stopped))


def _insist(claim: Claim, write: Callable[[], bool]) -> bool:
    for attempt in range(1, TRIES + 1):
        try:
            return write()
        except OperationalError as error:
            # A full disk or a lost server may come back; the lane stays ours while we beat.
            logger.warning("end not written run=%d try=%d error=%s", claim.run_id, attempt, error)
            connection.close()
            time.sleep(PAUSE * attempt)
    raise NoEndWritten(
        f"The end of run {claim.run_id} could not be written in {TRIES} tries; the database takes "
        "nothing. The processor stops; when the database works again, the run is tried anew. "
        "Look at the disk space and at the log above."
    )


def _end(claim: Claim, handled: asyncio.Task[Outcome], stopped: bool) -> bool:
    if handled.cancelled():
        return queue.end_stopped(claim) if stopped else queue.give_back(claim)
    error = handled.exception()
    if error is None:
        return _complete(claim, handled.result())
    if isinstance(error, RunFailed):
        return queue.fail(claim, error.fault, error.usage)
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database was away run=%d error=%s", claim.run_id, error)
        return queue.give_back(claim)
    logger.error("the handler broke run=%d", claim.run_id, exc_info=error)
    broken = Fault(error_class=ErrorClass.CRASH, message=f"The office itself failed: {error!r}")
    return queue.fail(claim, broken)


def _end_job(claim: Claim, done: asyncio.Task[str], stopped: bool) -> bool:
    if done.cancelled() and not stopped:
        return queue.give_back(claim)
    if done.cancelled():
        queue.end_job(claim, JobStatus.STOPPED)
    elif error := done.exception():
        logger.error("the job broke run=%d", claim.run_id, exc_info=error)
        queue.end_job(claim, JobStatus.FAILED, f"The office itself failed: {error!r}")
    else:
        wrong = done.result()
        queue.end_job(claim, JobStatus.FAILED if wrong else JobStatus.DONE, wrong)
    return queue.give_back(claim)


def _complete(claim: Claim, outcome: Outcome) -> bool:
    try:
        return queue.complete(claim, outcome)
    except OperationalError:
        raise
    except (DataError, IntegrityError, DatabaseError, ValueError) as error:
        logger.error("the answer cannot be kept run=%d", claim.run_id, exc_info=error)
        return queue.fail(
            claim, Fault(error_class=ErrorClass.OUTPUT, message=f"It cannot be kept: {error}")
        )
