"""What a copy holds, and how its making is watched; the same for both databases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# The step, how much of it is done, and of how much: None where that is not known.
Report = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What was found in a copy."""

    database: str
    migrations: list[str]
    rows: dict[str, int]
