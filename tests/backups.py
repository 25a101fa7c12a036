"""An office that never rests, and what must hold in every copy of its database."""

from __future__ import annotations

# Accepts, claims and completes without a pause; prints each message when it was acknowledged.
BUSY = """
from itertools import count
from tests.workers import answered, become_holder, queue, say, submission
holder = become_holder()
for number in count():
    accepted = queue.enqueue(submission("x" * 2000, [f"a{number % 5}", f"b{number % 3}"]))
    say(accepted.message_id)
    claim = queue.claim(queue.lane_of(f"a{number % 5}"), holder)
    if claim is not None and number % 7:
        queue.complete(claim, answered(claim))
"""


def broken_promises() -> list[str]:
    """Return queries that find what no whole copy holds."""
    return [
        """
        SELECT id FROM conversations LEFT JOIN (
            SELECT conversation_id, count(*) AS unfinished FROM messages
            WHERE status IN ('pending', 'processing') GROUP BY conversation_id
        ) AS counted ON conversation_id = id
        WHERE open <> coalesce(unfinished, 0)
        """,
        """
        SELECT message_id FROM messages
        WHERE conversation_id NOT IN (SELECT conversation_id FROM intakes)
           OR message_id NOT IN (SELECT message_id FROM agent_messages WHERE role = 'user')
        """,
        """
        SELECT message_id FROM messages
        WHERE status = 'processing' AND run_id NOT IN (SELECT run_id FROM lanes WHERE run_id > 0)
        """,
        """
        SELECT message_id FROM messages WHERE status = 'completed'
           AND run_id NOT IN (SELECT id FROM runs WHERE outcome = 'completed')
        """,
    ]
