"""The final text becomes answers: one for each reply address, as people read it; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents_app import tags
from queue_app import limits
from queue_app.batches import ROOM
from queue_app.values import HeldMessage, NewPost, NewResponse

PLATFORMS = frozenset({"discord", "telegram", "whatsapp"})

_MOST = 15 * limits.MAX_TEXT  # a response holds 16; a note may follow
_CUT = "\n\n(Cut here: the answer is longer than the office keeps.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """From where files may leave.

    `resolve` gives the real path of a file, links followed, or None when there is no such file;
    it alone looks at the disk. Roots are real paths; a relative path begins at the first.
    """

    roots: tuple[Path, ...]
    resolve: Callable[[Path], Path | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """What a run says: answers to deliver, and posts that wake nobody."""

    responses: tuple[NewResponse, ...]
    posts: tuple[NewPost, ...]


def answers(
    text: str,
    batch: Sequence[HeldMessage],
    shelf: Shelf,
    *,
    signed: Collection[str] = PLATFORMS,
) -> Replies:
    """Return one answer per reply address of the batch; channels in `signed` see who wrote it."""
    said, files, note = _take_files(_fitting(limits.legible(text)), shelf)
    agent = batch[0].agent
    shown = _lines(_shown(said, agent) or _wordless(agent, files), note)
    responses: list[NewResponse] = []
    posts: list[NewPost] = []
    for row in _one_per_address(batch):
        if row.channel == ROOM and row.team:
            posts += _in_room(row, row.team, said, [*(f"[file: {file}]" for file in files), note])
        else:
            signature = f"\n\n- [{agent}]" if row.channel in signed else ""
            responses.append(_response(row, shown + signature, files))
    return Replies(responses=tuple(responses), posts=tuple(posts))


def _one_per_address(batch: Sequence[HeldMessage]) -> list[HeldMessage]:
    """Return the first message of every place that waits for the answer; a room is one place."""
    places: dict[tuple[str, str, str | None], HeldMessage] = {}
    for row in batch:
        in_room = row.channel == ROOM and row.team
        places.setdefault((ROOM, row.team or "", None) if in_room else row.address, row)
    return list(places.values())


def _in_room(row: HeldMessage, team: str, said: str, more: Sequence[str]) -> list[NewPost]:
    """Return the plain answer to a room, or nothing from an agent that has only posted or is silent."""
    tagged = tags.parse(said)
    posted = [tag for tag in tagged.rooms if tag.names == (team,)]
    text = _lines(_shown(tags.without(tagged.text, posted), row.agent), *more)
    return [NewPost(team=team, from_agent=row.agent, message=text)] if text else []


def _take_files(text: str, shelf: Shelf) -> tuple[str, list[str], str]:
    """Return the text without its file tags, the files that may leave, and a note on the others."""
    tagged = tags.parse(text)
    files: dict[str, None] = {}
    refused: dict[str, None] = {}
    for tag in tagged.files:
        found = _resolved(tag.text, shelf)
        if found is not None and any(found.is_relative_to(root) for root in shelf.roots):
            files[str(found)] = None
        else:
            refused[tag.text[:200]] = None
    return tags.without(tagged.text, tagged.files), list(files), _refusal(list(refused))


def _resolved(path: str, shelf: Shelf) -> Path | None:
    if not path or len(path) > 4096:
        return None
    return shelf.resolve(shelf.roots[0] / path)


def _refusal(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    listed = ", ".join(f"“{path}”" for path in paths[:10])
    others = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
    return (
        f"(Not sent: {listed}{others}. Only files that exist in the agent's workspace "
        "or in the office's files can leave.)"
    )


def _wordless(agent: str, files: Sequence[str]) -> str:
    return f"@{agent} sends this." if files else f"@{agent} finished without a written answer."


def _lines(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _shown(text: str, agent: str) -> str:
    # Rewritten tags are longer than what the agent wrote.
    return _fitting(tags.readable(text, agent).strip())


def _fitting(text: str) -> str:
    data = text.encode()
    return text if len(data) <= _MOST else data[:_MOST].decode(errors="ignore") + _CUT


def _response(row: HeldMessage, message: str, files: Sequence[str]) -> NewResponse:
    return NewResponse(
        message_id=row.message_id,
        channel=row.channel,
        sender=row.sender,
        sender_id=row.sender_id,
        thread=row.thread,
        conversation_id=row.conversation_id,
        agent=row.agent,
        message=message,
        original_message=row.message,
        files=files,
    )
