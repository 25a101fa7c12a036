"""The hot statements on PostgreSQL: lanes are taken by SKIP LOCKED, rows are locked as they are read."""

from __future__ import annotations

from collections.abc import Sequence

from queue_app.sql import common
from queue_app.sql.common import *  # noqa: F403  the named statements both databases share

# A free lane that may be taken now; another processor at the same lane goes on to the next.
FREE_LANE = common.FREE_LANE + " FOR UPDATE SKIP LOCKED"

# Make sure a lane exists. Looked for first: an insert would wait for whoever is giving that lane up,
# who may wait for the conversation that the inserting end of a run holds.
ENSURE_LANE = """
INSERT INTO lanes (name) SELECT wanted.name FROM (SELECT CAST(%s AS text) AS name) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.name = wanted.name)
ON CONFLICT (name) DO NOTHING"""

# The line, locked without skipping: skipping its head would break the order.
LINE = common.LINE + " FOR UPDATE"

# The lane stays ours until the end is written.
LANE_OF_RUN = common.LANE_OF_RUN + " FOR UPDATE"

# Also when no lane guards them: two sweeps at once recover a stale run once.
HELD = common.HELD + " FOR UPDATE"

# The move to processing of the chosen heads of the line.
HOLD_MESSAGES = """
UPDATE messages SET status = 'processing', run_id = %s, claimed_by = agent, updated_at = %s
WHERE status = 'pending' AND id = ANY(%s)"""

# Held until the commit that follows, so event ids are seen in the order they were given.
ORDER_EVENTS = "SELECT pg_advisory_xact_lock(7496391)"

# This thread's commits need not survive a power cut, and it must notice in time that it cannot write.
QUICK_COMMITS = ("SET synchronous_commit = off", "SET lock_timeout = 3000")


def ids(values: Sequence[int]) -> list[int]:
    """Return row ids as a parameter of HOLD_MESSAGES."""
    return list(values)
