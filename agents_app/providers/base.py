"""What a provider is: how to start one invocation, and how to read what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents_app.subprocesses import Ended, Limits, Order
from queue_app.values import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One question to one agent's program."""

    agent: str
    model: str
    workspace: Path
    prompt: str
    mark: str  # drawn for this run; a lost run's processes are found by it
    attempt: int
    script: Mapping[str, Any]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the program answered, and what that used."""

    text: str
    usage: Usage


class Reader(Protocol):
    """Understands the lines of one invocation, as they come."""

    text: str  # the newest text, for those who watch
    tool: str | None  # the tool it uses just now
    is_final: bool  # the answer is complete; the program should end soon

    def feed(self, line: str) -> None:
        """Take the next line."""

    def conclude(self, ended: Ended) -> Reply:
        """Return the answer; raise RunFailed with the fault when there is none."""


class Provider(Protocol):
    """A program that answers."""

    name: str
    module: str | None  # whose `main` answers, for a provider that is no program of its own

    def order(self, invocation: Invocation, limits: Limits) -> Order:
        """Return what to start."""

    def reader(self) -> Reader:
        """Return a reader for one invocation."""
