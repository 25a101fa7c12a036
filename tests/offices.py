"""A real office for a test: a home and a port of its own, a terminal to print on, ended by id."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
MANAGE = (sys.executable, str(ROOT / "manage.py"))
PATIENCE = 60.0
T = TypeVar("T")


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """Return the first thing the condition gives that counts; fail after a while."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)
    return found


class Office:
    """A started office whose processes carry a mark in their environment."""

    def __init__(
        self,
        home: Path,
        command: Sequence[str] = (*MANAGE, "office"),
        *,
        environment: dict[str, str] | None = None,
        user: int | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.home, self.port, self.mark = home, free_port(), f"mark-{secrets.token_hex(8)}"
        self.sockets = tempfile.TemporaryDirectory(prefix="s")
        if user is not None:
            os.chown(self.sockets.name, user, user)
        self.environment = (os.environ if environment is None else environment) | {
            "TINYAGI_HOME": str(home),
            "TINYAGI_API_PORT": str(self.port),
            "XDG_RUNTIME_DIR": self.sockets.name,
            "OFFICE_MARK": self.mark,
        }
        self.user, self.cwd, self.printed = user, cwd, ""
        self.terminal, theirs = pty.openpty()
        identity = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            **identity,
        )
        os.close(theirs)

    def read_until(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Return the match once the terminal shows the pattern."""
        try:
            return until(lambda: self._look() or re.search(pattern, self.printed), pattern, seconds)
        except AssertionError:
            raise AssertionError(f"no {pattern!r} in:\n{self.printed}") from None

    def _look(self) -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while select.select([self.terminal], [], [], 0.05)[0]:
                if not (more := os.read(self.terminal, 65_536)):
                    return
                self.printed += more.decode(errors="replace").replace("\r\n", "\n")

    def open(self, seconds: float = PATIENCE) -> str:
        """Wait until it is open; return the login link it printed."""
        return self.read_until(r"(http://\S+/login/\S+)\n", seconds).group(1)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Return status and body of a GET; status 0 when nobody answers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            return 0, b""
        finally:
            connection.close()

    def healthy(self) -> bool:
        """Say whether it answers."""
        return self.get("/api/health") == (200, b'{"ok":true}')

    def processes(self, word: str = "") -> list[int]:
        """Return the living processes that carry the mark and whose command line has the word."""
        return sorted(int(entry.name) for entry in _marked(self.mark) if word in _command(entry))

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a management command on this office's home."""
        return manage(*arguments, environment=self.environment)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal and wait for the end; return the exit status."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; return the exit status."""
        until(lambda: self._look() or self.process.poll() is not None, "the end of the office")
        self._look()
        return self.process.wait()

    def clean_up(self) -> None:
        """Leave nothing behind, whatever the test did."""
        for pid in [self.process.pid, *self.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.terminal)
        self.sockets.cleanup()


@contextlib.contextmanager
def started(office: Office) -> Iterator[Office]:
    """Give an office to a block and end it with the block."""
    try:
        yield office
    finally:
        office.clean_up()


def manage(
    *arguments: str, environment: dict[str, str] | None = None, **values: str
) -> subprocess.CompletedProcess[str]:
    """Run a management command; the named values are added to its environment."""
    return subprocess.run(
        [*MANAGE, *arguments],
        cwd=ROOT,
        env=dict(os.environ if environment is None else environment) | values,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def _marked(mark: str) -> Iterator[Path]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                yield entry


def _command(entry: Path) -> str:
    with contextlib.suppress(OSError):
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
