"""Who changed what by hand; written with the change, in its transaction."""

from __future__ import annotations

import json
from typing import Any

from queue_app.masking import mask
from queue_app.models import Audit


def record(actor: str, action: str, subject: str, *, now: int, **detail: Any) -> None:
    """Keep one line of the audit; texts in the detail are masked."""
    text = json.dumps(_masked(detail), ensure_ascii=False) if detail else None
    Audit.objects.create(at=now, actor=actor, action=action, subject=subject, detail=text)


def _masked(value: Any) -> Any:
    # Before it becomes JSON: there the end of a line is a letter, which hides where a key begins.
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value
