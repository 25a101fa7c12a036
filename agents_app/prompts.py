"""The text an agent's program is given; pure.

The first line carries a mark drawn for this run, which the instructions name: whoever writes
`[Message from teammate …]` into a message cannot forge it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queue_app.batches import ROOM
from queue_app.values import HeldMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """How the attempt before this one ended."""

    error_class: str
    error: str


def prompt(batch: Sequence[HeldMessage], mark: str, earlier: Earlier | None) -> str:
    """Return the header line and every message of the batch, the primary first."""
    header = f"[office {mark}] {len(batch)} message{'s' if len(batch) > 1 else ''}"
    parts = [_told_before(earlier)] if earlier else []
    parts += [_block(row, alone=len(batch) == 1) for row in batch]
    return f"{header}\n" + "\n\n".join(parts)


def _told_before(earlier: Earlier) -> str:
    return (
        f"[office] This was tried before and ended badly ({earlier.error_class}: {earlier.error}). "
        "Look at what was already done before you repeat anything."
    )


def _block(row: HeldMessage, *, alone: bool) -> str:
    if row.channel == ROOM:
        return f"[Chat room #{row.team} — @{row.from_agent or 'user'}]:\n{row.message}"
    if row.from_agent:
        return f"[Message from teammate @{row.from_agent}]:\n{row.message}"
    return row.message if alone else f"[{row.sender} on {row.channel}]:\n{row.message}"
