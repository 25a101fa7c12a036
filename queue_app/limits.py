"""What the queue accepts as text, id and page size; pure."""

from __future__ import annotations

import re

from queue_app.errors import BadInput

MAX_TEXT = 1024 * 1024
MAX_ID = 200
MAX_NAME = 200
MAX_PAGE = 1000
MAX_TIME = 2**63 - 1
MAX_HOP = 2**31 - 1

_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNREADABLE = re.compile("[\0\ud800-\udfff]")


def text(name: str, value: str, *, most: int = MAX_TEXT) -> str:
    """Return the text; raise BadInput when it is empty, too long or cannot be stored."""
    if not value.strip():
        raise BadInput(f"'{name}' is empty. Write what the agent should read.")
    size = len(readable(name, value))
    if size > most:
        raise BadInput(
            f"'{name}' is {size} bytes long; the limit is {most}. "
            "Shorten it, or put the material into a file and name the file."
        )
    return value


def readable(name: str, value: str) -> bytes:
    """Return the bytes of a text; raise BadInput for NUL and lone surrogates."""
    if "\0" in value:
        raise BadInput(f"'{name}' holds a NUL character, which no database keeps. Remove it.")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"'{name}' holds half a character at position {error.start} (a lone surrogate). "
            "Send it as valid Unicode."
        ) from None


def legible(value: str) -> str:
    """Return a text that must be kept whatever it holds; what no database keeps becomes U+FFFD."""
    return _UNREADABLE.sub("\ufffd", value)


def identifier(name: str, value: str, *, most: int = MAX_ID) -> str:
    """Return an id of a client or platform; raise BadInput unless it is one printable word."""
    readable(name, value)
    if not value or len(value) > most or not value.isprintable() or " " in value:
        raise BadInput(
            f"'{name}' is {value[:60]!r} ({len(value)} characters); "
            f"an id has 1 to {most} printable characters and no space. Send another id."
        )
    return value


def name(field: str, value: str) -> str:
    """Return a display name; raise BadInput when it is empty, too long or unreadable."""
    return text(field, value, most=MAX_NAME)


def agent_id(value: str) -> str:
    """Return an agent's id; raise BadInput unless it can also be a directory's name."""
    if not _AGENT.fullmatch(value):
        raise BadInput(
            f"{value[:80]!r} cannot be an agent's id: 1 to 64 of a-z, 0-9, _ and -, "
            "beginning with a letter or digit."
        )
    return value


def number(name: str, value: int, *, most: int) -> int:
    """Return a number that a column can hold; raise BadInput below 0 and above `most`."""
    if not 0 <= value <= most:
        raise BadInput(f"'{name}' is {value}; it must be a whole number from 0 to {most}.")
    return value


def page(value: int, *, most: int = MAX_PAGE) -> int:
    """Return how many rows to give, at most `most`; raise BadInput below 1."""
    if value < 1:
        raise BadInput(f"limit is {value}; it must be a whole number from 1 to {most}.")
    return min(value, most)
