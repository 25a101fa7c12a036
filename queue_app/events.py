"""What watchers are told. An event is a row, written as the last statement of the change it tells of.

Rows hold ids and at most 4 kB of text; full texts are joined where they are shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.backends.utils import CursorWrapper

from queue_app import sql
from queue_app.masking import mask

MOST_TEXT = 4_000
_LONGEST_SECRET = 500
_AT_ONCE = 1_000  # SQLite counts the parameters of a statement

EVENTS: dict[str, str] = {
    "message_enqueued": "a message was accepted and waits in its agent's line",
    "message_received": "a run picked the message up",
    "agent_routed": "the message is given to this agent",
    "chain_step_start": "an agent's run begins",
    "chain_step_done": "an agent's run is completed, with its answer",
    "chain_handoff": "an agent handed work to a teammate",
    "response_ready": "an answer waits for its channel",
    "response_acked": "an answer was delivered",
    "response_failed": "an answer could not be delivered, or nobody can tell",
    "message_failed": "an attempt failed; the message waits for the next",
    "message_dead": "a message will not be tried again by itself",
    "message_retried": "a person sent a dead message back into the line",
    "message_discarded": "a person removed a dead message",
    "run_stopping": "a person asked for a run to stop",
    "lane_blocked": "an agent does not run until a time, and why",
    "lane_unblocked": "a blocked or paused agent may run again",
    "lane_paused": "a person paused an agent",
    "room_post": "a post was written in a team's room",
    "loop_stopped": "a conversation or room reached its limit; nothing more is handed on",
    "processor_start": "a queue processor started",
    "agent_progress": "what a run is doing right now: its newest text and tool",
    "agent_changed": "an agent was made, changed or deleted",
    "team_changed": "a team was made, changed or dissolved",
    "job_changed": "a job was asked for, began or ended",
}


class NewEvent(NamedTuple):
    """An event before it has an id."""

    type: str
    agent: str | None
    conversation_id: str | None
    data: dict[str, Any]


def clip(text: str) -> str:
    """Return the beginning of a text as an event may carry it, secrets masked."""
    if len(text) <= MOST_TEXT:
        return mask(text)
    # Half a secret has no known shape: what may be the beginning of one is left out.
    return mask(text[: MOST_TEXT + _LONGEST_SECRET])[:-_LONGEST_SECRET]


def record(cursor: CursorWrapper, events: Sequence[NewEvent], *, now: int) -> None:
    """Write the events; must be the last statement of its transaction."""
    if not events:
        return
    statements = sql.statements()
    if statements.ORDER_EVENTS:
        cursor.execute(statements.ORDER_EVENTS)
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        values: list[Any] = []
        for event in some:
            data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
            values += (event.type, event.agent, event.conversation_id, data, now)
        cursor.execute(statements.insert_events(len(some)), values)
