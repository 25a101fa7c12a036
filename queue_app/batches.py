"""Which messages go together into one invocation; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from django.db.models import TextChoices

MOST_MESSAGES = 50
MOST_BYTES = 200_000
ROOM = "chatroom"


class Batching(TextChoices):
    """How an agent likes to be given its mail."""

    TOGETHER = "together"  # everything one person sent
    BY_SENDER = "by_sender"  # never two reply addresses at once
    ONE = "one"  # one at a time; neighbouring room posts still come together


class InLine(Protocol):
    """What the rules need to know of a waiting message."""

    @property
    def person(self) -> str: ...
    @property
    def channel(self) -> str: ...
    @property
    def address(self) -> tuple[str, str, str | None]: ...
    @property
    def retry_count(self) -> int: ...
    @property
    def message(self) -> str: ...


M = TypeVar("M", bound=InLine)


def take(line: Iterable[M], batching: Batching) -> Sequence[M]:
    """Return the head of the line and those directly behind it that belong with it."""
    batch: list[M] = []
    size = 0
    for message in line:
        size += len(message.message.encode())
        if batch and not (size <= MOST_BYTES and _belongs(message, batch[0], batching)):
            break
        batch.append(message)
        if len(batch) == MOST_MESSAGES or message.retry_count:
            break
    return batch


def look_ahead(batching: Batching) -> int:
    """Return how many waiting messages have to be read before the head of the line is known."""
    return 1 if batching is Batching.ONE else MOST_MESSAGES


def _belongs(message: InLine, primary: InLine, batching: Batching) -> bool:
    if message.retry_count or message.person != primary.person:
        return False
    if batching is Batching.BY_SENDER:
        return message.address == primary.address
    if batching is Batching.ONE:
        return message.channel == primary.channel == ROOM
    return True
