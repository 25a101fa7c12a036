"""Real child processes of a test: started on its home and database, spoken to by lines, ended by id."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 120.0


class Child:
    """A process that runs one function of tests.workers."""

    def __init__(
        self,
        name: str,
        *arguments: object,
        log: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.workers", name, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            bufsize=1,
        )

    def line(self) -> str:
        """Return the next line it prints; fail when it is silent for too long."""
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "the child said nothing"
        return self.process.stdout.readline().rstrip("\n")

    def lines(self) -> list[str]:
        """Return all it prints until it ends."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, f"the child failed with {self.process.returncode}"
        return out.splitlines()

    def go(self) -> None:
        """Let a child that waits for a line go on."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for something that it is to bring about; fail when it ends or takes too long."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it did not come to that in time"
            assert self.process.poll() is None, "the child ended"
            time.sleep(0.01)

    def ask_to_end(self) -> None:
        """Ask it to end as a supervisor does."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def freeze(self) -> None:
        """Let it stand still."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


@contextmanager
def children(count: int, name: str, *arguments: object) -> Iterator[list[Child]]:
    """Start several at once; the last argument of each is its number."""
    started = [Child(name, *arguments, number) for number in range(count)]
    try:
        yield started
    finally:
        for child in started:
            child.__exit__(None, None, None)


def living_in(directory: Path) -> set[int]:
    """Return the processes that work in a directory, whatever they did to their environment."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if place.readlink().is_relative_to(directory):
                found.add(int(place.parent.name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found
