"""How a log line looks: `[ISO time] [LEVEL] text`, the form every log reader of the office knows."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from queue_app.masking import mask

_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}


class LineFormatter(logging.Formatter):
    """Write the time in UTC with milliseconds, and the level as readers expect it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without secrets, with the traceback behind it when there is one."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = _LEVELS.get(record.levelname, record.levelname)
        return f"[{at.removesuffix('+00:00')}Z] [{level}] {mask(super().format(record))}"
