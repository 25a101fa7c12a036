"""The office's log lines, formatted and written as always, but not between the figures."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings


@contextmanager
def keep_aside() -> Iterator[None]:
    """Let the log go to a file of the temporary home."""
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    with (settings.TINYOFFICE.home / "logs" / "bench.log").open("a") as log:
        before = handler.setStream(log)
        try:
            yield
        finally:
            handler.setStream(before)
