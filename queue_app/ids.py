"""Message ids: where a message came from, and eight characters drawn at random."""

from __future__ import annotations

import secrets
import string

ALPHABET = string.ascii_lowercase + string.digits
LENGTH = 8
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


def new_id(prefix: str) -> str:
    """Draw an id such as `telegram_x9y8z7w6`; an unlisted source counts as the API."""
    source = prefix if prefix in PREFIXES else "api"
    number = secrets.randbits(64)
    drawn = []
    for _ in range(LENGTH):
        number, index = divmod(number, len(ALPHABET))
        drawn.append(ALPHABET[index])
    return f"{source}_{''.join(drawn)}"
