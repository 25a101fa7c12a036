"""What goes into the queue and what comes out of it, as values; bad ones cannot be made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields

from queue_app import limits
from queue_app.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """One row for one agent, as routing decided it."""

    channel: str
    sender: str
    message: str
    agent: str
    person: str
    sender_id: str | None = None
    received: str | None = None  # as it came in, tag included; for the agent's history
    files: Sequence[str] = ()
    team: str | None = None
    thread: str | None = None
    from_agent: str | None = None
    available_at: int | None = None
    hop: int = 0

    def __post_init__(self) -> None:
        limits.text("message", self.message)
        limits.agent_id(self.agent)
        limits.identifier("channel", self.channel, most=64)
        limits.name("sender", self.sender)
        limits.name("person", self.person)
        for name in ("sender_id", "thread", "from_agent", "team"):
            if (value := getattr(self, name)) is not None:
                limits.identifier(name, value)
        if self.received is not None:
            limits.text("message", self.received)
        for file in self.files:
            limits.text("files", file, most=4096)
        limits.number("hop", self.hop, most=limits.MAX_HOP)
        if self.available_at is not None:
            limits.number("available_at", self.available_at, most=limits.MAX_TIME)

    @property
    def files_json(self) -> str | None:
        """Return the files as the table keeps them."""
        return json.dumps(list(self.files)) if self.files else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One thing somebody sent: the key that makes it once, and a row for each addressee."""

    source: str
    messages: Sequence[NewMessage]
    external_id: str | None = None
    message_id: str | None = None

    def __post_init__(self) -> None:
        if not self.messages:
            raise BadInput("A submission has no messages; address at least one agent.")
        limits.identifier("source", self.source, most=64)
        for name in ("external_id", "message_id"):
            if (value := getattr(self, name)) is not None:
                limits.identifier(name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPost:
    """A post in a team's room, and a message for each member it wakes."""

    team: str
    from_agent: str  # `user` for a person
    message: str
    deliveries: Sequence[NewMessage] = ()
    most: int = 0  # how many posts of agents that wake others the conversation may hold

    def __post_init__(self) -> None:
        limits.text("message", self.message, most=16 * limits.MAX_TEXT)
        limits.identifier("team", self.team)
        limits.identifier("from_agent", self.from_agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What a person is told of their post: it is on disk, and who will read it."""

    post_id: int
    message_ids: tuple[str, ...]
    conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a sender is told: it is on disk."""

    message_ids: tuple[str, ...]
    conversation_id: str

    @property
    def message_id(self) -> str:
        """Return the id of the first row, which is the conversation's root."""
        return self.message_ids[0]


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that a run holds; the fields are the columns the claim reads, in that order."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    files: str | None
    conversation_id: str
    from_agent: str | None
    retry_count: int
    created_at: int
    person: str
    team: str | None
    thread: str | None
    parent_id: str | None
    hop: int

    @property
    def address(self) -> tuple[str, str, str | None]:
        """Return where the answer goes."""
        return (self.channel, self.sender_id or self.sender, self.thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lane, the run that holds it, and the messages it was given."""

    lane: str
    run_id: int
    started: int
    messages: tuple[HeldMessage, ...] = ()

    @property
    def primary(self) -> HeldMessage:
        """Return the head of the line; the others are its context."""
        return self.messages[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResponse:
    """An answer for one reply address."""

    message_id: str
    channel: str
    sender: str
    message: str
    original_message: str
    sender_id: str | None = None
    agent: str | None = None
    files: Sequence[str] = ()
    metadata: str | None = None
    conversation_id: str | None = None
    thread: str | None = None

    def __post_init__(self) -> None:
        limits.text("message", self.message, most=16 * limits.MAX_TEXT)
        for field in fields(self):
            if isinstance(value := getattr(self, field.name), str):
                limits.readable(field.name, value)
        for file in self.files:
            limits.readable("files", file)

    @property
    def files_json(self) -> str | None:
        """Return the files as the table keeps them."""
        return json.dumps(list(self.files)) if self.files else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run used, as far as its provider told."""

    provider: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


NOTHING_USED = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run leads to; it all commits together or not at all."""

    text: str
    responses: Sequence[NewResponse] = ()
    follow_ups: Sequence[NewMessage] = ()
    posts: Sequence[NewPost] = ()
    stopped: Sequence[str] = ()  # why some of it is not handed on: a loop was seen before the end
    refusal_note: str = "(Handing this on was stopped: the conversation has reached its limit.)"
    usage: Usage = NOTHING_USED

    def __post_init__(self) -> None:
        limits.readable("text", self.text)
