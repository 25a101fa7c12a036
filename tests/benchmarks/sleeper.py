"""A process that only sleeps and wakes: what the machine itself takes to let another process run."""

from __future__ import annotations

import sys
from time import monotonic_ns


def main(_: list[str]) -> None:
    """Print, for each line that comes in, the moment it was read."""
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    for _line in sys.stdin:
        sys.stdout.write(f"{monotonic_ns()}\n")
        sys.stdout.flush()
