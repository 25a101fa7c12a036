"""The shepherd itself: one loop that passes output on, keeps the limits and ends the tree."""

from __future__ import annotations

import os
import select
import sys
import time

from queue_app.shepherd import trees, wire
from queue_app.shepherd.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The same functions; the public module adds 3.5 ms of enumerations to a start of 8 ms.
    import _signal as signal

_CHUNK = 65536
_MOST_WAITING = 4 * _CHUNK
_LOOK_EVERY = 1.0
_KILL_EVERY = 0.02
# What cannot be killed for so long is another user's or stuck in the kernel.
_GIVE_UP_AFTER = 30.0


def main() -> None:
    """Read the order, run it, report its end."""
    order, prompt = wire.decode(_read_exactly)
    run = _Run(order)
    try:
        run.start(prompt)
    except trees.CannotStart as refused:
        run.report(b"cannot_start", step=refused.step, errno=b"%d" % refused.errno)
    else:
        run.watch()
        run.report(run.reason, **run.outcome())
    os._exit(0)


def _read_exactly(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(0, min(size, _MOST_WAITING))
        if not part:
            # The processor is gone before it ordered anything: there is nothing to end.
            sys.exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _hear_signals() -> int:
    """Return a pipe that gives the number of each signal: a child ended, or an order to end."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return ours


class _Run:
    """One run, from its start until nothing of it is left."""

    def __init__(self, order: dict[bytes, list[bytes]]) -> None:
        self.order = order
        self.parent = os.getppid()
        self.signals = _hear_signals()
        self.tree = trees.Tree()
        self.reason = b""
        self.moments: dict[bytes, float] = {}
        self.kill_at = 0.0
        self.wait_status: int | None = None
        self.left: set[int] | None = None
        self.room = int(order[b"output"][0])
        self.streams: dict[int, Lines] = {}
        self.input = -1
        self.outbox = bytearray()
        self.heard = True
        os.set_blocking(1, False)

    def start(self, prompt: bytes) -> None:
        """Start the command and its clocks."""
        env = dict(entry.split(b"=", 1) for entry in self.order.get(b"env", ()))
        self.pid, self.input, *outputs = trees.start(
            self.order[b"arg"], cwd=self.order[b"cwd"][0], env=env
        )
        self.streams = dict(zip(outputs, (Lines(b"out"), Lines(b"err")), strict=True))
        self.prompt = memoryview(prompt)
        self.moments = {b"timeout": self._in(b"wall"), b"silence": self._in(b"silence")}
        numbers = {"pid": b"%d" % self.pid, "shepherd": b"%d" % os.getpid()}
        self._say(b"started", wire.fields(numbers))

    def watch(self) -> None:
        """Pass output on and keep the limits until the tree has ended."""
        while self.left is None or self.streams:
            self._step()
            if self.left is None:
                self._reap()
                self._check()
            elif len(self.outbox) < _MOST_WAITING:
                # No writer is left: what a pipe does not hold by now will not come.
                for fd in list(self.streams):
                    self._pass_on(fd)

    def outcome(self) -> dict[str, bytes]:
        """Return how the command itself ended, and how many of its tree could not be ended."""
        found = {"left": b"%d" % len(self.left or ())}
        if self.wait_status is not None:
            code = os.waitstatus_to_exitcode(self.wait_status)
            found["signal" if code < 0 else "code"] = b"%d" % abs(code)
        return found

    def report(self, reason: bytes, **fields: bytes) -> None:
        """Say how the run ended, and wait until that is read."""
        self._say(b"end", wire.fields({"reason": reason, **fields}))
        while self.outbox:
            self._step()

    def _step(self) -> None:
        """Wait for something to do, and do it."""
        poll = select.poll()
        poll.register(self.signals, select.POLLIN)
        if self.heard:
            poll.register(0, select.POLLIN)
        if self.outbox:
            poll.register(1, select.POLLOUT)
        if self.input >= 0:
            poll.register(self.input, select.POLLOUT)
        if len(self.outbox) < _MOST_WAITING:
            for fd in self.streams:
                poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(self._patience() * 1000):
            self._serve(fd)

    def _serve(self, fd: int) -> None:
        if fd == self.signals:
            if set(os.read(fd, _CHUNK)) - {signal.SIGCHLD}:
                self._end(b"stopped")
        elif fd == 0:
            self._obey(os.read(fd, _CHUNK))
        elif fd == 1:
            self._flush()
        elif fd == self.input:
            self._feed()
        else:
            self._pass_on(fd)

    def _obey(self, orders: bytes) -> None:
        if not orders:
            self._lose_parent()
        if wire.RESULT in orders and not self.reason:
            self.moments.setdefault(b"after_result", self._in(b"after_result"))
        if wire.STOP in orders:
            self._end(b"stopped")

    def _feed(self) -> None:
        try:
            self.prompt = self.prompt[os.write(self.input, self.prompt[:_CHUNK]) :]
        except BrokenPipeError:
            # A command need not read its prompt.
            self.prompt = self.prompt[:0]
        if not self.prompt:
            os.close(self.input)
            self.input = -1

    def _pass_on(self, fd: int) -> None:
        lines = self.streams[fd]
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            data = b""
        if not data:
            del self.streams[fd]
            os.close(fd)
            if lines.length:
                self._say(lines.kind, lines.finish())
            return
        self._rearm_silence()
        self.room -= len(data)
        if self.room < 0:
            self._end(b"output_limit")
        elif whole := lines.feed(data):
            self._say(lines.kind, whole)

    def _say(self, kind: bytes, payload: bytes) -> None:
        if self.heard:
            self.outbox += wire.frame(kind, payload)

    def _flush(self) -> None:
        try:
            del self.outbox[: os.write(1, self.outbox[:_CHUNK])]
        except BrokenPipeError:
            self._lose_parent()

    def _lose_parent(self) -> None:
        self.heard = False
        self.outbox.clear()
        self._end(b"parent_gone")

    def _reap(self) -> None:
        """Take the ends of children; nothing is left when there are no more to be had."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.pid:
                    self.wait_status = ended[1]
                    self._end(b"exit")
        except ChildProcessError:
            if self.tree.adopts or not self.tree.living():
                self.left = set()

    def _check(self) -> None:
        now = time.monotonic()
        if len(self.outbox) >= _MOST_WAITING:
            # It is the reader who is slow, not the command who is silent.
            self._rearm_silence()
        if self.heard and os.getppid() != self.parent:
            # A copy of the processor may hold the pipe open.
            self._lose_parent()
        for reason, moment in self.moments.items():
            if now >= moment:
                self._end(reason)
                break
        if self.reason and self.left is None:
            self._press(now)
        elif not self.tree.adopts:
            self.tree.remember()

    def _press(self, now: float) -> None:
        """Ask the tree to end, then end it."""
        if not self.kill_at:
            self.kill_at = self._in(b"grace")
            trees.terminate(self.tree.living())
        elif now >= self.kill_at + _GIVE_UP_AFTER:
            self.left = self.tree.living()
        elif now >= self.kill_at:
            self.tree.kill()

    def _end(self, reason: bytes) -> None:
        if not self.reason:
            self.reason = reason
            self.moments = {}

    def _rearm_silence(self) -> None:
        if b"silence" in self.moments:
            self.moments[b"silence"] = self._in(b"silence")

    def _in(self, limit: bytes) -> float:
        return time.monotonic() + float(self.order[limit][0])

    def _patience(self) -> float:
        """Return for how long nothing needs to be looked at unless it happens."""
        if self.reason and self.left is None:
            return max(_KILL_EVERY, min(_LOOK_EVERY, self.kill_at - time.monotonic()))
        next_moment = min(self.moments.values(), default=float("inf"))
        return max(0.0, min(_LOOK_EVERY, next_moment - time.monotonic()))
