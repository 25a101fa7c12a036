"""Whose fault a failed run is; pure. The answer decides who waits, who is charged and who dies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from django.db.models import TextChoices

from queue_app.limits import legible

MOST_TEXT = 4_000


class Blame(Enum):
    """Who pays for a failure."""

    AGENT = "agent"  # the lane is blocked; the message is not charged
    SESSION = "session"  # a new session is tried at once
    MESSAGE = "message"  # an attempt is spent


class ErrorClass(TextChoices):
    """What went wrong, in the words that rows, events and filters use."""

    AUTH = "auth"  # key or login missing or refused
    MISSING = "missing"  # program or model not found
    LIMIT = "limit"  # the provider's rate or usage limit
    BUDGET = "budget"  # the owner's own limit
    ENDPOINT = "endpoint"  # provider not reachable
    CONTEXT = "context"  # the session's memory is full
    SESSION = "session"  # the session is not found
    REFUSED = "refused"  # the provider will not answer this
    TIMEOUT = "timeout"  # ran or stayed silent too long
    CRASH = "crash"  # the program died
    OUTPUT = "output"  # no answer, or one that cannot be read
    LOST = "lost"  # the processor died or stood still
    STOPPED = "stopped"  # a person stopped the run
    CANCELLED = "cancelled"  # a person took it out of the line
    EXPIRED = "expired"  # waited too long for a blocked agent


BLAME: dict[ErrorClass, Blame] = {
    ErrorClass.AUTH: Blame.AGENT,
    ErrorClass.MISSING: Blame.AGENT,
    ErrorClass.LIMIT: Blame.AGENT,
    ErrorClass.BUDGET: Blame.AGENT,
    ErrorClass.ENDPOINT: Blame.AGENT,
    ErrorClass.CONTEXT: Blame.SESSION,
    ErrorClass.SESSION: Blame.SESSION,
    ErrorClass.REFUSED: Blame.MESSAGE,
    ErrorClass.TIMEOUT: Blame.MESSAGE,
    ErrorClass.CRASH: Blame.MESSAGE,
    ErrorClass.OUTPUT: Blame.MESSAGE,
    ErrorClass.LOST: Blame.MESSAGE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a run failed, as its handler saw it; whatever a program wrote, it can be kept."""

    error_class: ErrorClass
    message: str
    reset_at: int | None = None  # when the provider says the limit ends
    exit_code: int | None = None
    partial: str | None = None  # what the agent had written; kept with the run

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", legible(self.message)[:MOST_TEXT])
        if self.partial is not None:
            object.__setattr__(self, "partial", legible(self.partial))

    @property
    def blame(self) -> Blame:
        """Return who pays."""
        return BLAME[self.error_class]
