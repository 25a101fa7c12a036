"""The life of messages and responses, as a page of verbs.

Only the modules of this package write a status, each time as a short transaction guarded by the
state it leaves. An end of a run begins with giving up its lane `WHERE run_id = mine`; no row means
that the claim was lost: nothing is written, and the caller is told False.
"""

from __future__ import annotations

from queue_app.queue.claims import (
    beat,
    claim,
    hold,
    lane_of,
    pause,
    ready_lanes,
    resume,
    unblock,
)
from queue_app.queue.completion import complete
from queue_app.queue.endings import end_stopped, fail, give_back, lose, recover_stale
from queue_app.queue.intake import enqueue, enqueue_all
from queue_app.queue.jobs import (
    end_job,
    job_progress,
    request_job,
    start_job,
    stop_job,
)
from queue_app.queue.outbox import ack, ack_unserved, respond, sending, undelivered
from queue_app.queue.pruning import prune
from queue_app.queue.rooms import post_to_room
from queue_app.queue.triage import (
    cancel,
    discard_dead,
    edit_and_retry,
    expire_blocked,
    request_stop,
    retry_dead,
)

__all__ = [
    "ack",
    "ack_unserved",
    "beat",
    "cancel",
    "claim",
    "complete",
    "discard_dead",
    "edit_and_retry",
    "end_job",
    "end_stopped",
    "enqueue",
    "enqueue_all",
    "expire_blocked",
    "fail",
    "give_back",
    "hold",
    "job_progress",
    "lane_of",
    "lose",
    "pause",
    "post_to_room",
    "prune",
    "ready_lanes",
    "recover_stale",
    "request_job",
    "request_stop",
    "respond",
    "resume",
    "retry_dead",
    "sending",
    "start_job",
    "stop_job",
    "unblock",
    "undelivered",
]
