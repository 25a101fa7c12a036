"""What the queue refuses; the whole tree is drawn in tinyoffice.errors."""

from __future__ import annotations

from tinyoffice.errors import TinyOfficeError


class QueueError(TinyOfficeError):
    """The queue was asked for something it does not do."""

    code = "queue_error"


class BadInput(QueueError):
    """A value is empty, too long or not readable text."""

    code = "bad_input"


class DuplicateMessage(QueueError):
    """The same thing was sent before; `message_id` names what is stored."""

    code = "duplicate_message"

    def __init__(self, asked: str, message_id: str) -> None:
        super().__init__(
            f"'{asked}' was accepted before, as message '{message_id}'. "
            "It is not run twice; send it under a new id if you mean a new message."
        )
        self.message_id = message_id


class UnknownMessage(QueueError):
    """No message has the id that was asked for."""

    code = "unknown_message"

    def __init__(self, row_id: int) -> None:
        super().__init__(
            f"There is no message {row_id}. It may have been pruned or discarded; "
            "the audit and the agent's history still tell of it."
        )


class UnknownRun(QueueError):
    """The run does not exist or has ended."""

    code = "unknown_run"

    def __init__(self, run_id: int) -> None:
        super().__init__(
            f"Run {run_id} is not going on (ended, stopped before, or never started). "
            "Look at the conversation for how it ended."
        )


class NotPending(QueueError):
    """The message does not wait any more, so it cannot be cancelled."""

    code = "not_pending"

    def __init__(self, row_id: int, status: str) -> None:
        super().__init__(
            f"Message {row_id} is {status}, not pending, so it cannot be cancelled. "
            "Stop its run if it is processing; retry or discard it if it is dead."
        )


class NotDead(QueueError):
    """The message is not dead, so there is nothing to triage."""

    code = "not_dead"

    def __init__(self, row_id: int, status: str) -> None:
        super().__init__(
            f"Message {row_id} is {status}, not dead, so it can be neither retried nor discarded. "
            "Somebody may have been quicker; load the list again."
        )


class UnknownJob(QueueError):
    """The job does not exist or has ended."""

    code = "unknown_job"

    def __init__(self, job_id: int) -> None:
        super().__init__(
            f"Job {job_id} neither waits nor runs (ended, stopped before, or never asked for). "
            "Look at the list of jobs for how it ended."
        )
