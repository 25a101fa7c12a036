"""Message ids: where a message came from, three characters of the time and five drawn at random.

Ids of one time lie side by side in every index, so a commit changes few pages of a large file. An id
is a name, never a secret: whoever knows one still needs the right to see what it names.
"""

from __future__ import annotations

import secrets
import string

from queue_app import clock

ALPHABET = string.digits + string.ascii_lowercase
LENGTH = 8
_RANDOM = 36**5
_TIMES = 36**3  # of six minutes each: they come again after 194 days
_SIX_MINUTES = 360_000
PREFIXES = frozenset(
    {
        "api",
        "discord",
        "telegram",
        "whatsapp",
        "web",
        "cli",
        "internal",
        "chat",
        "chatroom",
        "chatroom_batch",
        "proactive",
        "schedule",
        "heartbeat",
    }
)


def new_id(prefix: str, *, now: int | None = None) -> str:
    """Draw an id such as `telegram_x9y8z7w6`; an unlisted source counts as the API."""
    source = prefix if prefix in PREFIXES else "api"
    at = clock.now() if now is None else now
    number = at // _SIX_MINUTES % _TIMES * _RANDOM + secrets.randbelow(_RANDOM)
    drawn = []
    for _ in range(LENGTH):
        number, index = divmod(number, len(ALPHABET))
        drawn.append(ALPHABET[index])
    return f"{source}_{''.join(reversed(drawn))}"
