"""The environment and the cast."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings

from queue_app import holders
from queue_app.holders import Holder


@pytest.fixture
def holder() -> Iterator[Holder]:
    """A processor that lives as long as the test."""
    one = holders.become("processor", settings.TINYOFFICE.home)
    yield one
    one.release()
