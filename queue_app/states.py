"""The states of messages and responses, and every legal move between them.

             enqueue            claim                    complete
  (nothing) ────────▶ pending ────────▶ processing ────────────────▶ completed ──▶ archived / pruned
                        ▲  │               │ failed or lost, attempts left; given back
                        │  │               ├──────────▶ pending
                        │  │ cancel        │ failed or lost, last attempt; stopped by a person
                        │  └──────────▶ dead ◀──────┘
                        └── retry ────── │ ──▶ discarded (row deleted, audit keeps it)

  responses: pending ▶ sending ▶ acked | pending again | unknown | dead   (REST clients: pending ▶ acked)

`queue_app.queue` alone makes these moves, each as an update guarded by the state it leaves.
"""

from __future__ import annotations

from django.db.models import TextChoices


class MessageStatus(TextChoices):
    """Where a message is on its way."""

    PENDING = "pending"  # accepted, waiting in its agent's line
    PROCESSING = "processing"  # held by the run in `run_id`
    COMPLETED = "completed"  # answered
    DEAD = "dead"  # attempts spent, stopped or cancelled; a person decides


class ResponseStatus(TextChoices):
    """Where an answer is on its way out."""

    PENDING = "pending"  # waiting for its channel
    SENDING = "sending"  # a channel is handing it to the platform
    ACKED = "acked"  # delivered
    UNKNOWN = "unknown"  # the sender died on the way: delivered or not, nobody can tell
    DEAD = "dead"  # the platform refused it for good


class ConversationState(TextChoices):
    """Whether a conversation still counts as going on."""

    OPEN = "open"
    CLOSED = "closed"


class RunOutcome(TextChoices):
    """How a run ended; empty while it goes on."""

    COMPLETED = "completed"
    FAILED = "failed"  # the agent, its session or the message was at fault
    LOST = "lost"  # its holder died or stood still
    GIVEN_BACK = "given_back"  # the processor was asked to stop
    STOPPED = "stopped"  # a person stopped it


class JobStatus(TextChoices):
    """Where a background job is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


_P, _R, _C, _D = MessageStatus

MOVES: frozenset[tuple[MessageStatus, MessageStatus]] = frozenset(
    {(_P, _R), (_P, _D), (_R, _P), (_R, _C), (_R, _D), (_D, _P)}
)

RESPONSE_MOVES: frozenset[tuple[ResponseStatus, ResponseStatus]] = frozenset(
    {
        (ResponseStatus.PENDING, ResponseStatus.SENDING),
        (ResponseStatus.PENDING, ResponseStatus.ACKED),
        (ResponseStatus.SENDING, ResponseStatus.ACKED),
        (ResponseStatus.SENDING, ResponseStatus.PENDING),
        (ResponseStatus.SENDING, ResponseStatus.UNKNOWN),
        (ResponseStatus.SENDING, ResponseStatus.DEAD),
    }
)
