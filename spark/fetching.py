"""Fetch the Spark part by pip, with a few tries, into the Python that runs the office."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from spark import availability
from spark.availability import REQUIREMENTS, State

WAITS = (0, 10, 60)
CONSTRAINTS = REQUIREMENTS.with_name("constraints.txt")


def fetch(say: Callable[[str], None]) -> bool:
    """Install what is missing of the Spark part; return False if every try failed."""
    if availability.state() is State.INSTALLED:
        say("The Spark part is installed.")
        return True
    lock = availability.lock()
    if lock is None:
        say("The Spark part is being fetched by another process.")
        return True
    try:
        return any(_try(number, seconds, lock, say) for number, seconds in enumerate(WAITS, 1))
    finally:
        os.close(lock)


def _try(number: int, seconds: int, lock: int, say: Callable[[str], None]) -> bool:
    if seconds:
        say(f"Trying again in {seconds} s.")
        time.sleep(seconds)
    wanted = availability.requirements(REQUIREMENTS.read_text())
    say(f"Fetching {', '.join(wanted)}: try {number} of {len(WAITS)}.")
    status = _install(wanted, lock)
    say("The Spark part is installed." if status == 0 else f"pip ended with status {status}.")
    return status == 0


def _install(wanted: list[str], lock: int) -> int:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(wanted) + "\n")
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        command += ["--progress-bar", "off", "-c", str(CONSTRAINTS), "-r", file.name]
        # pip holds the lock too: it counts as a fetch for as long as pip runs.
        with subprocess.Popen(command, pass_fds=[lock]) as pip:  # noqa: S603
            return pip.wait()
