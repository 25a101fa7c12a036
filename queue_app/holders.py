"""Who holds lanes: a process with a name of its own and a lock file that it keeps for life.

The operating system frees the lock when the process ends, however it ends, so a restart knows
within milliseconds what was lost; process ids, which are used again, prove nothing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from tinyoffice import storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A living process that may hold lanes, until it is released."""

    name: str
    role: str
    host: str
    pid: int
    lock: int

    def release(self) -> None:
        """Give up the lock; for a process that goes on without its lanes."""
        os.close(self.lock)


def become(role: str, home: Path) -> Holder:
    """Make this process a holder; its lock lives until it ends or releases it."""
    host = host_of(home)
    name = f"{host}/{role}-{os.getpid()}-{secrets.token_hex(3)}"
    return Holder(name=name, role=role, host=host, pid=os.getpid(), lock=_take(name, home))


def host_of(home: Path) -> str:
    """Return the name under which lock files of this home are known; each home has its own."""
    return storage.secret(home / "host", lambda: secrets.token_hex(4))


def is_gone(name: str, home: Path) -> bool:
    """Say whether a holder of this home has ended; a holder of another home is never known to have."""
    host, _, _ = name.partition("/")
    if host != host_of(home):
        return False
    try:
        lock = os.open(_lock_file(name, home), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def sweep(home: Path) -> int:
    """Remove the lock files of holders that have ended; return how many."""
    host = host_of(home)
    removed = 0
    for file in (home / "locks").glob("*.lock"):
        if is_gone(f"{host}/{file.stem}", home):
            file.unlink(missing_ok=True)
            removed += 1
    return removed


def _take(name: str, home: Path) -> int:
    file = _lock_file(name, home)
    while True:
        lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A sweep may have removed the file between its making and its locking.
        if file.exists() and os.path.samestat(os.fstat(lock), file.stat()):
            return lock
        os.close(lock)


def _lock_file(name: str, home: Path) -> Path:
    return home / "locks" / f"{name.partition('/')[2]}.lock"
