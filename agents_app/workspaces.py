"""The agents' directories: the only module that touches them."""

from __future__ import annotations

from pathlib import Path

from queue_app import limits

_AGENTS_MD = """\
# @{agent}

You are @{agent}. Write here what you should always know: this file is yours.

- Hand work to a teammate: `[@name: what to do]`. Several at once: `[@a,b: what to do]`.
- Tell the whole team: `[#team: text]`.
- What stands outside the brackets is context for everybody you address, and the answer people read.
"""


def ensure(root: Path, agent: str, directory: str | None) -> Path:
    """Make an agent's workspace if it is missing and return it; edited files are left alone."""
    place = root / limits.agent_id(agent)
    if directory:
        place = root / Path(directory).expanduser()
    for part in (place, place / "memory", place / ".tinyagi"):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    instructions = place / "AGENTS.md"
    if not instructions.exists():
        instructions.write_text(_AGENTS_MD.format(agent=agent))
    return place
