"""A run's command as the event loop sees it: lines come out, limits are kept, the end is defined.

The command is started, watched and ended by `queue_app.shepherd`. Whatever happens to the task that
waits here, the closing of its pipe ends the command and all it has started.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import signal
from asyncio import StreamReader
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from pathlib import Path

from agents_app.shepherds import Shepherd, Start, start_fresh
from queue_app.shepherd import trees, wire

_CHUNK = 65536
_ERRORS_KEPT = 16 * 1024
# Longer than a shepherd needs to give up what cannot be killed.
_SLACK = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a run may take, in seconds, and how much it may write, in bytes."""

    wall: float = 3600.0
    silence: float = 600.0
    after_result: float = 30.0
    grace: float = 5.0  # between the request to end and the end
    output: int = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to start, where, with what environment, and what to tell it on its input."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    mark: str  # known to nobody else on this host: `trees.end_run` finds a lost run by it
    prompt: bytes = field(default=b"", repr=False)
    limits: Limits = Limits()

    def encode(self) -> bytes:
        """Return it as the shepherd reads it."""
        limits = self.limits
        numbers = {
            "wall": limits.wall,
            "silence": limits.silence,
            "after_result": limits.after_result,
            "grace": limits.grace,
            "output": limits.output,
        }
        env = {**self.env, trees.RUN_MARK: self.mark}
        return wire.encode(
            [
                *((name, str(number).encode()) for name, number in numbers.items()),
                ("cwd", os.fsencode(self.cwd)),
                *(("arg", os.fsencode(word)) for word in self.argv),
                *(("env", os.fsencode(f"{name}={value}")) for name, value in env.items()),
            ],
            self.prompt,
        )


class Reason(StrEnum):
    """Why a run ended; the first cause counts."""

    EXIT = "exit"  # the command ended by itself
    TIMEOUT = "timeout"  # it ran too long
    SILENCE = "silence"  # it wrote nothing for too long
    AFTER_RESULT = "after_result"  # it did not end after its result
    OUTPUT_LIMIT = "output_limit"  # it wrote too much
    STOPPED = "stopped"  # somebody asked for it
    PARENT_GONE = "parent_gone"  # the processor ended first; nobody reads this one
    CANNOT_START = "cannot_start"  # there was no command to run
    LOST = "lost"  # the shepherd was killed


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A command that runs, and the shepherd by which `trees.end_run` can end it."""

    pid: int
    shepherd: tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended; nothing of it is left, but for what could not be killed."""

    reason: Reason
    message: str = ""  # empty when the command ended well
    code: int | None = None
    signal: int | None = None
    left: int = 0
    errors: str = ""  # the last of what it wrote to its standard error


OnLine = Callable[[str], Awaitable[None] | None]
OnStart = Callable[[Started], Awaitable[None] | None]


async def run(order: Order, on_line: OnLine, on_start: OnStart | None = None) -> Ended:
    """Run a command to its end; for a caller that never needs to stop it but by cancelling."""
    return await Run(order, on_line, on_start).ended()


class Run:
    """One run of a command. A slow `on_line` slows the command; cancelling ends it."""

    def __init__(
        self,
        order: Order,
        on_line: OnLine,
        on_start: OnStart | None = None,
        start: Start = start_fresh,
    ) -> None:
        self.order = order
        self._start = start
        self._on_line = on_line
        self._on_start = on_start
        self._shepherd: Shepherd | None = None
        self._asked = b""
        self._errors = bytearray()
        self._alarm: asyncio.TimerHandle | None = None
        self._rescue: asyncio.Task[int] | None = None

    def stop(self) -> None:
        """Ask for the end of the whole tree; `ended` tells when it is done."""
        self._tell(wire.STOP)
        self._expect_end(within=0)

    def result_seen(self) -> None:
        """Tell that the command has given its result and should end soon."""
        self._tell(wire.RESULT)

    async def ended(self) -> Ended:
        """Run it and return how it ended; on every way out its tree has ended or is about to."""
        if refusal := _unusable(self.order):
            return Ended(reason=Reason.CANNOT_START, message=refusal)
        try:
            self._shepherd = shepherd = await self._start(self.order.mark)
        except OSError as error:
            return _cannot_start(self.order, "fork", error.errno or 0)
        control, voice = shepherd.control, shepherd.voice
        try:
            self._expect_end(within=self.order.limits.wall)
            control.write(self.order.encode() + self._asked)
            end = await self._listen(voice)
        finally:
            control.close()
            self._expect_end(within=0)
            await self._part(shepherd, voice)
        return self._conclude(end or await self._lost())

    async def _listen(self, voice: StreamReader) -> dict[str, str] | None:
        """Pass lines on; return the report, or None if the shepherd died without one."""
        frames = wire.Frames()
        while data := await voice.read(_CHUNK):
            for kind, payload in frames.feed(data):
                if kind == "end":
                    return wire.words(payload)
                await self._take(kind, payload)
        return None

    async def _take(self, kind: str, payload: bytes) -> None:
        if kind == "out":
            for line in payload.decode(errors="replace").split("\n")[:-1]:
                await _settle(self._on_line(line))
        elif kind == "err":
            self._errors += payload
            del self._errors[:-_ERRORS_KEPT]
        elif self._on_start:
            pid, shepherd = (int(wire.words(payload)[name]) for name in ("pid", "shepherd"))
            started = Started(pid=pid, shepherd=(shepherd, trees.since(shepherd)))
            await _settle(self._on_start(started))

    async def _part(self, shepherd: Shepherd, voice: StreamReader) -> None:
        """Wait until the shepherd is gone; what it still says is not for anybody."""
        while await voice.read(_CHUNK):
            continue
        await shepherd.collect()
        if self._alarm:
            self._alarm.cancel()

    async def _lost(self) -> dict[str, str]:
        left = await asyncio.to_thread(trees.end_run, self.order.mark)
        return {"reason": Reason.LOST, "left": str(left)}

    def _tell(self, word: bytes) -> None:
        if self._shepherd is None:
            self._asked += word
        elif not self._shepherd.control.is_closing():
            self._shepherd.control.write(word)

    def _expect_end(self, *, within: float) -> None:
        """Set the time by which even a shepherd that was itself stopped is ended by force."""
        if self._alarm:
            self._alarm.cancel()
        if self._shepherd and within < inf:
            delay = within + self.order.limits.grace + _SLACK
            self._alarm = asyncio.get_running_loop().call_later(delay, self._force)

    def _force(self) -> None:
        self._rescue = asyncio.create_task(asyncio.to_thread(trees.end_run, self.order.mark))

    def _conclude(self, end: dict[str, str]) -> Ended:
        reason = Reason(end["reason"])
        if reason is Reason.CANNOT_START:
            return _cannot_start(self.order, end["step"], int(end["errno"]))
        code = int(end["code"]) if "code" in end else None
        number = int(end["signal"]) if "signal" in end else None
        return Ended(
            reason=reason,
            message=_sentence(reason, self.order.limits, code, number),
            code=code,
            signal=number,
            left=int(end["left"]),
            errors=self._errors.decode(errors="replace"),
        )


async def _settle(result: Awaitable[None] | None) -> None:
    if inspect.isawaitable(result):
        await result


def _sentence(reason: Reason, limits: Limits, code: int | None, number: int | None) -> str:
    if reason is Reason.EXIT and number is not None:
        return f"The program was killed by {_name_of(number)}."
    if reason is Reason.EXIT:
        return f"The program ended with code {code}." if code else ""
    return {
        Reason.TIMEOUT: f"The program ran for {limits.wall:g} s, the limit of one run.",
        Reason.SILENCE: f"The program wrote nothing for {limits.silence:g} s.",
        Reason.AFTER_RESULT: f"The program went on {limits.after_result:g} s after its result.",
        Reason.OUTPUT_LIMIT: f"The program wrote more than {limits.output} bytes.",
        Reason.STOPPED: "The run was stopped.",
        Reason.PARENT_GONE: "The processor ended before the run.",
        Reason.LOST: "The shepherd of the run was killed, and the run with it.",
    }[reason]


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _unusable(order: Order) -> str:
    """Return why no system could start this; empty when one could."""
    texts = (*order.argv, str(order.cwd), *order.env, *order.env.values())
    if not order.argv or not order.argv[0]:
        return "No program is named. Name one in the agent's provider."
    if any("\0" in text for text in texts):
        return f"An argument or variable of '{order.argv[0]}' holds a NUL character. Remove it."
    if any("=" in name or not name for name in order.env):
        return f"A variable of '{order.argv[0]}' has a name that is empty or holds '='. Rename it."
    return ""


def _cannot_start(order: Order, step: str, number: int) -> Ended:
    program, cause = order.argv[0], os.strerror(number).lower()
    if step == "fork":
        message = f"No process could be started ({cause}). End others, or raise the limit."
    elif step == "directory":
        message = (
            f"The working directory '{order.cwd}' cannot be entered ({cause}). "
            "Create it, or give the agent another one."
        )
    else:
        message = {
            errno.ENOENT: f"The program '{program}' was not found. Install it, or correct its name.",
            errno.EACCES: f"'{program}' is not executable. Make it so, or name another program.",
            errno.E2BIG: f"The arguments of '{program}' are too long. Give the text on its input.",
        }.get(number, f"'{program}' could not be started ({cause}). Correct or replace it.")
    return Ended(reason=Reason.CANNOT_START, message=message)
