"""Whether an office runs on a home: a locked file, which the system frees however the office ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take(home: Path) -> int | None:
    """Lock the home for this office and return the lock, or None if another office has it."""
    lock = os.open(_file(home), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def is_here(home: Path) -> bool:
    """Say whether an office runs on this home, or is on its way to an end."""
    try:
        lock = os.open(_file(home), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def process_id(home: Path) -> str:
    """Return the process id the office on this home wrote down when it started."""
    return _file(home).read_text().strip() or "unknown"


def _file(home: Path) -> Path:
    return home / "office.lock"
