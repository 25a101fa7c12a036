"""The hot statements on SQLite. Its one write lock, taken by BEGIN IMMEDIATE, is the row lock."""

from __future__ import annotations

import json
from collections.abc import Sequence

from queue_app.sql.common import *  # noqa: F403  the named statements both databases share

# The move to processing of the chosen heads of the line.
HOLD_MESSAGES = """
UPDATE messages SET status = 'processing', run_id = %s, claimed_by = agent, updated_at = %s
WHERE status = 'pending' AND id IN (SELECT value FROM json_each(%s))"""

# Writers are serialized, so event ids follow commits by themselves.
ORDER_EVENTS = ""

# This thread's commits need not survive a power cut, and it must notice in time that it cannot write.
QUICK_COMMITS = ("PRAGMA synchronous = NORMAL", "PRAGMA busy_timeout = 3000")


def ids(values: Sequence[int]) -> str:
    """Return row ids as a parameter of HOLD_MESSAGES."""
    return json.dumps(values)
