"""The time on the wall, as the tables keep it."""

from __future__ import annotations

import time


def now() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
