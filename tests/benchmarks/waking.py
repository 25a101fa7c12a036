"""How soon another process sees a message, and what it costs to wait for one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, monotonic_ns, sleep
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.db import connection

from queue_app import queue
from tests import factories
from tests.benchmarks.past import AGENTS, TEXT

_PROCESSOR = "queue_app.management.commands.process_queue"
_PAUSE = 0.004  # lets the other process fall asleep again
_SETTLE = 5.0


class Waking(NamedTuple):
    """Milliseconds until another process saw a message, and until a bare one woke, in turns."""

    seen: list[float]
    woken: list[float]


def latencies(messages: int) -> Waking:
    """Return the times from just before the commit, beside those of a line through a pipe."""
    waking = Waking([], [])
    with _part("listener") as listener, _part("sleeper") as sleeper, _last_statement() as sent:
        for number in range(messages):
            sleep(_PAUSE)
            queue.enqueue(factories.submission(TEXT, AGENTS[number % len(AGENTS)]))
            waking.seen.append((_heard(listener) - sent[0]) / 1_000_000)
            sleep(_PAUSE)
            begun = monotonic_ns()
            _nudge(sleeper)
            waking.woken.append((_heard(sleeper) - begun) / 1_000_000)
    return waking


def idle_listener(seconds: float) -> float | None:
    """Return the share of one core that a process uses to wait for the bell, with its net."""
    with _part("listener") as listener:
        return _share_used(listener.pid, seconds)


def idle_processor(seconds: float) -> float | None:
    """Return the share of one core that the real processor uses while nothing comes."""
    if importlib.util.find_spec(_PROCESSOR) is None:
        return None
    command = [sys.executable, "manage.py", "process_queue"]
    with _process(command, subprocess.DEVNULL) as processor:
        sleep(_SETTLE)
        return _share_used(processor.pid, seconds)


def _share_used(pid: int, seconds: float) -> float | None:
    """Return CPU time over wall time; None where the system does not tell it of each thread."""
    if not Path(f"/proc/{pid}/schedstat").exists():
        return None
    begun, used = monotonic(), _cpu_seconds(pid)
    sleep(seconds)
    return (_cpu_seconds(pid) - used) / (monotonic() - begun)


def _cpu_seconds(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@contextmanager
def _last_statement() -> Iterator[list[int]]:
    """Give the time at which the last statement of a transaction was done: the commit comes next."""
    sent = [0]

    def stamp(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        result = execute(sql, params, many, context)
        if connection.in_atomic_block:
            sent[0] = monotonic_ns()
        return result

    with connection.execute_wrapper(stamp):
        yield sent


@contextmanager
def _part(name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.benchmarks", name]
    with _process(command, subprocess.PIPE) as part:
        assert part.stdout is not None
        assert part.stdout.readline() == "listening\n", f"the {name} did not start; see its log"
        sleep(0.2)
        yield part


@contextmanager
def _process(command: list[str], output: int) -> Iterator[subprocess.Popen[str]]:
    with _log() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=log,
            text=True,
            cwd=settings.BASE_DIR,
        )
        try:
            yield process
            assert process.poll() is None, f"{command} ended by itself; see its log"
        finally:
            process.terminate()
            _await_end(process)
            _close(process)


def _close(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _await_end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _log() -> IO[str]:
    return (settings.TINYOFFICE.home / "logs" / "bench.log").open("a")


def _nudge(part: subprocess.Popen[str]) -> None:
    assert part.stdin is not None
    part.stdin.write("\n")
    part.stdin.flush()


def _heard(part: subprocess.Popen[str]) -> int:
    assert part.stdout is not None
    return int(part.stdout.readline())
