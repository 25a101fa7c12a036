"""The hot statements both databases understand; each has a name and a sentence.

The literal status in a condition is what lets the planner use the partial index.
"""

from __future__ import annotations

from queue_app.values import HeldMessage

_HELD = ", ".join(HeldMessage.__dataclass_fields__)

# Remember that this was sent; no row when it was sent before.
INSERT_INTAKE = """
INSERT INTO intakes (source, external_id, message_id, conversation_id, created_at)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT (source, external_id) DO NOTHING"""

# What was accepted under this key.
FIND_INTAKE = "SELECT message_id FROM intakes WHERE source = %s AND external_id = %s"

# Begin a conversation; no row when the id was drawn or sent before.
INSERT_CONVERSATION = """
INSERT INTO conversations (id, person, team, messages, open, last_at)
VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"""

# Put a message in line; no row when the id was drawn or sent before.
INSERT_MESSAGE = """
INSERT INTO messages (message_id, channel, sender, sender_id, message, agent, files, conversation_id,
  from_agent, person, team, thread, parent_id, hop, available_at, created_at, updated_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (message_id) DO NOTHING"""

# Make sure a lane exists; lanes are never deleted.
ENSURE_LANE = "INSERT INTO lanes (name) VALUES (%s) ON CONFLICT (name) DO NOTHING"

# Keep a line of an agent's history.
INSERT_HISTORY = """
INSERT INTO agent_messages
  (agent_id, role, channel, sender, message_id, content, conversation_id, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"""

# Keep an answer for its channel to deliver.
INSERT_RESPONSE = """
INSERT INTO responses (message_id, channel, sender, sender_id, message, original_message, agent,
  files, metadata, conversation_id, thread, available_at, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id"""

# Tell the watchers; several rows in one statement, see `insert_events`.
INSERT_EVENTS = "INSERT INTO events (type, agent, conversation_id, data, created_at) VALUES "
EVENT_ROW = "(%s, %s, %s, %s, %s)"

# Lanes of agents that are free, allowed to run, and have somebody waiting.
READY_LANES = """
SELECT name FROM lanes WHERE run_id IS NULL AND NOT paused
  AND (blocked_until IS NULL OR blocked_until <= %s)
  AND EXISTS (SELECT 1 FROM messages WHERE status = 'pending'
              AND agent = substr(lanes.name, 7) AND available_at <= %s)
  AND name LIKE 'agent:%%' ORDER BY name"""

# A free lane that may be taken now.
FREE_LANE = """
SELECT name FROM lanes WHERE name = %s AND run_id IS NULL AND NOT paused
  AND (blocked_until IS NULL OR blocked_until <= %s)"""

# The line of one agent, as far as it may be taken now.
LINE = f"""
SELECT {_HELD} FROM messages WHERE status = 'pending' AND agent = %s AND available_at <= %s
ORDER BY available_at, id LIMIT %s"""

# Open a run; its id is the fence.
INSERT_RUN = """
INSERT INTO runs (lane, agent, attempt, host, started, wait_ms)
VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"""

# Take the lane for the run.
TAKE_LANE = """
UPDATE lanes SET run_id = %s, holder = %s, beat = beat + 1 WHERE name = %s AND run_id IS NULL"""

# Remember which messages the run was given.
INSERT_RUN_MESSAGES = """
INSERT INTO run_messages (run_id, message_id, parent_id, hop)
SELECT run_id, message_id, parent_id, hop FROM messages WHERE status = 'processing' AND run_id = %s"""

# Show that the holder of these lanes lives.
BEAT = "UPDATE lanes SET beat = beat + 1 WHERE holder = %s AND run_id IS NOT NULL"

# Give the lane up; no row when the run no longer holds it.
GIVE_UP_LANE = """
UPDATE lanes SET run_id = NULL, holder = NULL, completed = completed + %s, strikes = %s,
  blocked_until = %s, blocked_reason = %s
WHERE name = %s AND run_id = %s"""

# The lane as its holder left it; no row when the run no longer holds it.
LANE_OF_RUN = "SELECT strikes FROM lanes WHERE name = %s AND run_id = %s"

# The messages a run holds, in line.
HELD = f"""
SELECT {_HELD} FROM messages WHERE status = 'processing' AND run_id = %s ORDER BY available_at, id"""

# The move to completed of all that a run holds.
COMPLETE_HELD = """
UPDATE messages SET status = 'completed', updated_at = %s
WHERE status = 'processing' AND run_id = %s"""

# The way back into the line of all that a run holds, charged or not.
RETURN_HELD = """
UPDATE messages SET status = 'pending', run_id = NULL, claimed_by = NULL,
  retry_count = retry_count + %s, last_error = COALESCE(%s, last_error),
  error_class = COALESCE(%s, error_class), updated_at = %s
WHERE status = 'processing' AND run_id = %s"""

# The end of one message that a run holds.
BURY_HELD = """
UPDATE messages SET status = 'dead', run_id = NULL, claimed_by = NULL,
  retry_count = retry_count + %s, last_error = %s, error_class = %s, updated_at = %s
WHERE status = 'processing' AND run_id = %s AND id = %s"""

# A conversation after messages of it ended.
SETTLE_CONVERSATION = """
UPDATE conversations SET open = open - %s, cost = cost + %s, last_at = %s WHERE id = %s"""

# Room for follow-ups in a conversation; no row when there is none.
ADMIT_FOLLOW_UPS = """
UPDATE conversations SET messages = messages + %s, open = open + %s, state = 'open'
WHERE id = %s AND messages + %s <= %s"""

# Close a run, once.
CLOSE_RUN = """
UPDATE runs SET finished = %s, run_ms = %s - started, outcome = %s, error_class = %s, error = %s, partial = %s,
  exit_code = %s, provider = COALESCE(%s, provider), model = COALESCE(%s, model),
  input_tokens = %s, output_tokens = %s, cost = %s
WHERE id = %s AND finished IS NULL"""


def insert_events(count: int) -> str:
    """Return the statement that tells the watchers of several things at once."""
    return INSERT_EVENTS + ", ".join([EVENT_ROW] * count)
