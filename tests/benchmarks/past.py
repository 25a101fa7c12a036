"""Fill a database with finished work, as a long-running office has it, by a few large statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from queue_app import clock

AGENTS = tuple(f"agent{number}" for number in range(100))
TEXT = ("The quarterly figures are in the shared folder; compare them with last year, list " * 3)[
    :200
]
AT_ONCE = 50_000

_DAY = 86_400_000
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_SCATTER = 1_000_003_777  # shares no factor with 36, so that every number gets an id of its own
_DRAWN = " || ".join(
    f"substr('{_ALPHABET}', CAST((number * {_SCATTER} / {36**place}) % 36 AS INTEGER) + 1, 1)"
    for place in range(8)
)
_NUMBERS = "CREATE TEMPORARY TABLE past (number BIGINT PRIMARY KEY, id TEXT, agent TEXT, at BIGINT)"
_FORGET = "DELETE FROM past"
_DRAW = """
INSERT INTO past
WITH RECURSIVE numbers (number) AS (
  SELECT CAST({first} AS BIGINT) UNION ALL SELECT number + 1 FROM numbers WHERE number < {last})
SELECT number, 'api_' || {drawn}, 'agent' || (number % {agents}), {since} + number * {pace} FROM numbers"""

_ROWS = (
    """INSERT INTO intakes (source, external_id, message_id, conversation_id, created_at)
    SELECT 'api', id, id, id, at FROM past ORDER BY number""",
    """INSERT INTO conversations (id, person, messages, open, last_at, state)
    SELECT id, 'owner', 1, 0, at, 'closed' FROM past ORDER BY number""",
    f"""INSERT INTO messages (message_id, channel, sender, sender_id, message, agent, conversation_id,
      status, claimed_by, run_id, person, available_at, created_at, updated_at)
    SELECT id, 'api', 'Alice', 'alice', '{TEXT}', agent, id,
      'completed', agent, number, 'owner', at, at, at + 9 FROM past ORDER BY number""",
    f"""INSERT INTO agent_messages
      (agent_id, role, channel, sender, message_id, content, conversation_id, created_at)
    SELECT agent, 'user', 'api', 'Alice', id, '{TEXT}', id, at FROM past
    UNION ALL SELECT agent, 'assistant', 'api', agent, id, '{TEXT}', id, at + 9 FROM past""",
    """INSERT INTO runs
      (lane, agent, host, started, wait_ms, finished, run_ms, outcome, provider, model)
    SELECT 'agent:' || agent, agent, 'bench', at + 1, 1, at + 9, 8, 'completed', 'rehearsal', 'none'
    FROM past ORDER BY number""",
    """INSERT INTO run_messages (run_id, message_id) SELECT number, id FROM past ORDER BY number""",
    f"""INSERT INTO responses (message_id, channel, sender, sender_id, message, original_message, agent,
      status, conversation_id, available_at, created_at, acked_at)
    SELECT id, 'api', 'Alice', 'alice', '{TEXT}', '{TEXT}', agent, 'acked', id, at, at, at + 20
    FROM past ORDER BY number""",
    f"""INSERT INTO events (type, agent, conversation_id, data, created_at)
    SELECT 'chain_step_done', agent, id, '{{"messageId":"' || id || '","content":"{TEXT}"}}', at
    FROM past ORDER BY number""",
)


def fill(execute: Callable[[str], object], rows: int) -> Iterator[int]:
    """Write so many finished messages with all their companions; yield how many are written."""
    since = clock.now() - _DAY
    execute(_NUMBERS)
    for first in range(1, rows + 1, AT_ONCE):
        last = min(first + AT_ONCE - 1, rows)
        execute(_FORGET)
        execute(
            _DRAW.format(
                first=first,
                last=last,
                drawn=_DRAWN,
                agents=len(AGENTS),
                since=since,
                pace=max(1, _DAY // (rows + 1)),
            )
        )
        for statement in _ROWS:
            execute(statement)
        yield last
    execute("DROP TABLE past")
