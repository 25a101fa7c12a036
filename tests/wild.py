"""Programs that behave as badly as agents can, and the search for what they leave behind.

`python -I -S tests/wild.py <behaviour> <directory> [number]`: each process notes its id as a file in
the directory. All end by themselves after a minute, should a test fail to end them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

LIFETIME = 60.0
_TRAPPED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SHELL = 'trap "" TERM; : > "$0/$$"; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done'


def command(behaviour: str, directory: Path, number: int = 0) -> tuple[str, ...]:
    """Return the command line of a behaviour."""
    return (sys.executable, "-I", "-S", __file__, behaviour, str(directory), str(number))


def noted(directory: Path) -> set[int]:
    """Return the ids of all processes that ever were part of a behaviour."""
    return {int(name) for name in os.listdir(directory) if name.isdigit()}


def survivors(directory: Path, mark: str) -> set[int]:
    """Return who is left: of those that noted their ids, and of all that bear the mark."""
    return {pid for pid in noted(directory) if _lives(pid)} | _bearing(mark)


def _lives(pid: int) -> bool:
    stat = _read(Path(f"/proc/{pid}/stat"))
    return bool(stat) and not stat.rpartition(b") ")[2].startswith(b"Z")


def _bearing(mark: str) -> set[int]:
    environs = {file: _read(file) for file in Path("/proc").glob("[0-9]*/environ")}
    return {int(file.parent.name) for file, text in environs.items() if mark.encode() in text}


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _note(directory: Path) -> None:
    for number in _TRAPPED:
        signal.signal(number, signal.SIG_IGN)
    (directory / str(os.getpid())).touch()


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def _linger(directory: Path, *, write: bool = False) -> None:
    until = time.monotonic() + LIFETIME
    while time.monotonic() < until:
        if write:
            with (directory / "written").open("a") as file:
                file.write("x")
        time.sleep(0.001 if write else 0.05)
    os._exit(0)


def _apart(directory: Path, *, write: bool = False) -> None:
    """Start a process in a session of its own whose parents are gone."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    _note(directory)
    _linger(directory, write=write)


def _unmarked(directory: Path) -> None:
    """Start one in a session of its own, without an environment."""
    if not os.fork():
        argv = ["setsid", "env", "-i", "/bin/sh", "-c", _SHELL, str(directory)]
        os.execve("/usr/bin/setsid", argv, {})  # noqa: S606


def _wild(directory: Path, *, write: bool = False) -> None:
    _note(directory)
    _apart(directory, write=write)
    _unmarked(directory)
    until = time.monotonic() + LIFETIME
    while len(noted(directory)) < 3 and time.monotonic() < until:
        time.sleep(0.002)
    _say("ready")


def wild(directory: Path, number: int) -> None:
    """Have three processes that ignore requests to end, in three sessions; stay silent."""
    _wild(directory)
    _linger(directory)


def writing(directory: Path, number: int) -> None:
    """Be wild, and let the orphan keep writing a file."""
    _wild(directory, write=True)
    _linger(directory)


def leaving(directory: Path, number: int) -> None:
    """Be wild, and end at once, with the others holding the output open."""
    _wild(directory)
    os._exit(number)


def chatty(directory: Path, number: int) -> None:
    """Be wild, and write lines without end."""
    _wild(directory)
    until = time.monotonic() + LIFETIME
    while time.monotonic() < until:
        _say("x" * 999)


def closed(directory: Path, number: int) -> None:
    """Be wild, and close all pipes."""
    _wild(directory)
    for fd in range(3):
        os.close(fd)
    _linger(directory)


def breeding(directory: Path, number: int) -> None:
    """Fork again and again, each child going on with it, `number` processes in all."""
    _note(directory)
    _say("ready")
    until = time.monotonic() + LIFETIME
    while time.monotonic() < until:
        if len(noted(directory)) < number and not os.fork():
            os.setsid()
            _note(directory)
        time.sleep(0.001)
    os._exit(0)


def bereaved(directory: Path, number: int) -> None:
    """End when asked to, and leave a child in a session of its own that does not."""
    if not os.fork():
        os.setsid()
        _note(directory)
        _linger(directory)
    until = time.monotonic() + LIFETIME
    while not noted(directory) and time.monotonic() < until:
        time.sleep(0.002)
    _say("ready")
    _linger(directory)


def hopping(directory: Path, number: int) -> None:
    """Have a child that is somebody else all the time: it forks, ends, and goes on as its child."""
    _note(directory)
    _say("ready")
    if os.fork():
        _linger(directory)
    until = time.monotonic() + LIFETIME
    with (directory / "written").open("ab", buffering=0) as file:
        while time.monotonic() < until:
            if os.fork():
                os._exit(0)
            os.setsid()
            file.write(b"x")
    os._exit(0)


def stopped(directory: Path, number: int) -> None:
    """Stand still, as after Ctrl-Z."""
    (directory / str(os.getpid())).touch()
    _say("ready")
    os.kill(os.getpid(), signal.SIGSTOP)
    _linger(directory)


def polite(directory: Path, number: int) -> None:
    """Say a last word when asked to end."""
    (directory / str(os.getpid())).touch()
    signal.signal(signal.SIGTERM, lambda *_: (_say("goodbye"), os._exit(number)))
    _say("ready")
    _linger(directory)


def progress(directory: Path, number: int) -> None:
    """Write `number` lines of 1,000 bytes, and note how far that went."""
    (directory / str(os.getpid())).touch()
    for line in range(number):
        os.write(1, b"x" * 999 + b"\n")
        if line % 100 == 0:
            (directory / "lines").write_text(str(line))


_BEHAVIOURS: tuple[Callable[[Path, int], None], ...] = (
    wild,
    writing,
    leaving,
    chatty,
    closed,
    breeding,
    bereaved,
    hopping,
    stopped,
    polite,
    progress,
)

if __name__ == "__main__":
    behaviours = {behaviour.__name__: behaviour for behaviour in _BEHAVIOURS}
    behaviours[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
