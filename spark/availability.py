"""Whether the Spark part is installed: a large download that is fetched behind the running office.

Standard library only, for it is asked exactly when nothing of Spark is there yet.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from importlib import metadata
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements.txt"
MARK = "# spark"
_LOOK_EVERY = 0.5


class State(StrEnum):
    """How far the Spark part has come."""

    INSTALLED = "installed"
    FETCHING = "being fetched"
    MISSING = "missing"


class SparkMissing(Exception):
    """Spark was asked for, is not installed, and nobody is fetching it."""


def requirements(text: str) -> list[str]:
    """Return the requirement lines that belong to the Spark part, without their mark."""
    lines = [line for line in text.splitlines() if line.rstrip().endswith(MARK)]
    return [line.rpartition(MARK)[0].strip() for line in lines]


def state() -> State:
    """Say how far the Spark part has come in this Python's environment."""
    wanted = requirements(REQUIREMENTS.read_text())
    if all(_is_installed(requirement) for requirement in wanted) and not _is_locked():
        return State.INSTALLED
    return State.FETCHING if _is_locked() else State.MISSING


def lock() -> int | None:
    """Become the one who fetches, until the descriptor is closed; None if another is at it."""
    descriptor = os.open(_lock_file(), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def wait(progress: Callable[[str], None]) -> None:
    """Return when Spark is installed, telling how long a running fetch takes; else raise SparkMissing."""
    began = time.monotonic()
    while (found := state()) is State.FETCHING:
        progress(f"Waiting for the Spark part to be fetched: {time.monotonic() - began:.0f} s")
        time.sleep(_LOOK_EVERY)
    if found is State.MISSING:
        raise SparkMissing(
            "The Spark part is not installed and nobody is fetching it. Run `manage.py fetch_spark`; "
            "if that failed before, `manage.py logs spark` says why."
        )


def _is_installed(requirement: str) -> bool:
    name, version = re.split(r"\s*==\s*", requirement, maxsplit=1)
    try:
        return metadata.version(name) == version
    except metadata.PackageNotFoundError:
        return False


def _is_locked() -> bool:
    try:
        descriptor = os.open(_lock_file(), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock_file() -> Path:
    # The environment, not home: offices that share one must not fetch into it at once.
    return Path(sys.prefix) / "spark-fetch.lock"
