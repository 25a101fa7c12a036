"""Who changed what by hand; written with the change, in its transaction."""

from __future__ import annotations

import json
from typing import Any

from queue_app.masking import mask
from queue_app.models import Audit


def record(actor: str, action: str, subject: str, *, now: int, **detail: Any) -> None:
    """Keep one line of the audit; texts in the detail are masked."""
    text = mask(json.dumps(detail, ensure_ascii=False)) if detail else None
    Audit.objects.create(at=now, actor=actor, action=action, subject=subject, detail=text)
