"""What the owner changes while the office runs: rows of `settings`, read where they are used."""

from __future__ import annotations

from collections.abc import Collection

from tinyoffice.models import Setting


def channels(key: str, *, default: Collection[str]) -> Collection[str]:
    """Return the channels a setting names, or the default while it is not set."""
    row = Setting.objects.filter(pk=key).first()
    return default if row is None else [str(name) for name in row.value]
