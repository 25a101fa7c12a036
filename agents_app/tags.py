"""Find `[@mate: …]`, `[#team: …]` and `[send_file: …]` in a text; pure, and in linear time.

Code is opaque: nothing in it opens, closes or nests. In quote lines, and in fenced code that never
ends, no tag opens, but a bracket there may still close a tag that was opened before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

# Put behind an @ so that a program does not read the path it names; never part of a name.
ZERO_WIDTH = "\u200b"

_BRACKET = re.compile(r"[\[\]]")
_AFTER_NAMES = re.compile(r"[:\[\]]")
_TICKS = re.compile(r"`+")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_QUOTE = re.compile(r"[ \t]*>")
_FENCE = re.compile(rf"(?:{_ITEM.pattern}|[ \t]*)(`{{3,}}(?=[^`]*$)|~{{3,}})")
# Agents close a tag on the line that ends its code: "```]".
_FENCE_END = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t\r\]]*$")
_MORE_ON_THE_LINE = re.compile(r"[ \t]*(?=[^\s.,;:!?)\]}])")

Span = tuple[int, int]
Edit = tuple[int, int, str]


class Kind(Enum):
    """What a tag is for; the value is what follows its bracket."""

    DIRECT = "@"
    ROOM = "#"
    FILE = "send_file:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """One tag; `start` is its opening bracket, `body` follows the colon, `end` the closing bracket."""

    kind: Kind
    names: tuple[str, ...]  # lower-cased; of a room tag, one
    text: str
    start: int
    body: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A text, rid of zero-width spaces, and its tags; kinds are found independently of each other."""

    text: str
    direct: tuple[Tag, ...]
    rooms: tuple[Tag, ...]
    files: tuple[Tag, ...]

    @property
    def shared(self) -> str:
        """Return what is said to everybody: the text without its direct tags."""
        return without(self.text, self.direct)


def parse(text: str) -> Tagged:
    """Return the tags of a text, from left to right; an unclosed one is text, what follows counts."""
    text = clean(text)
    code, inert = _markdown(text)
    visible = _blanked(text, code)
    open_to = _blanked(visible, inert)
    ends = _matching(visible)
    direct, rooms, files = (tuple(_of_kind(kind, text, open_to, ends)) for kind in Kind)
    return Tagged(text=text, direct=direct, rooms=rooms, files=files)


def clean(text: str) -> str:
    """Return the text without zero-width spaces."""
    return text.replace(ZERO_WIDTH, "")


def without(text: str, tags: Sequence[Tag]) -> str:
    """Return the text with the tags cut out, trimmed."""
    return _edited(text, [(tag.start, tag.end, "") for tag in tags]).strip()


def addressed(shared: str, text: str, to: str) -> str:
    """Return what one addressee reads: what everybody is told, then their own part."""
    return f"{shared}\n\n------\n\nFor you, @{to}:\n{text}" if shared else text


def readable(text: str, writer: str) -> str:
    """Return the text as people read it: `@mia → @otto: build it` for `[@otto: build it]`."""
    tagged = parse(text)
    edits: list[Edit] = []
    for tag in (*tagged.direct, *tagged.rooms):
        if tag.names and tag.text:
            edits += _rewritten(tagged.text, tag, writer)
    return _edited(tagged.text, sorted(edits))


def _rewritten(text: str, tag: Tag, writer: str) -> tuple[Edit, Edit]:
    """Return the edits of a tag's head and tail; its body stays, so that other kinds may nest."""
    names = ", ".join(f"{tag.kind.value}{name}" for name in tag.names)
    last = tag.end - 1
    body = text[tag.body : last]
    head = last - len(body.lstrip())
    tail = tag.body + len(body.rstrip())
    more = _MORE_ON_THE_LINE.match(text, tag.end)
    after = (more.end(), "\n") if more else (tag.end, "")
    return (tag.start, head, f"@{writer} → {names}: "), (tail, *after)


def _of_kind(kind: Kind, text: str, open_to: str, ends: Mapping[int, int]) -> Iterator[Tag]:
    """Give the closed tags of one kind; what stands inside one of them is its text."""
    resume = 0
    for found in re.finditer(re.escape("[" + kind.value), open_to):
        start, last = found.start(), ends.get(found.start())
        if start < resume or last is None:
            continue
        body = found.end() if kind is Kind.FILE else _after_names(open_to, found.end())
        names = text[found.end() : body - 1].strip().lower() if body else ""
        if body is None or not (names or kind is Kind.FILE):
            continue
        resume = last + 1
        yield Tag(
            kind=kind,
            names=_names(kind, names),
            text=text[body:last].strip(),
            start=start,
            body=body,
            end=resume,
        )


def _names(kind: Kind, names: str) -> tuple[str, ...]:
    if kind is Kind.DIRECT:
        return tuple(name for part in names.split(",") if (name := part.strip()))
    return (names,) if names else ()


def _after_names(text: str, start: int) -> int | None:
    found = _AFTER_NAMES.search(text, start)
    return found.end() if found and found.group() == ":" else None


def _matching(text: str) -> dict[int, int]:
    """Return the closing bracket of every opening one that has it."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACKET.finditer(text):
        if found.group() == "[":
            opened.append(found.start())
        elif opened:
            ends[opened.pop()] = found.start()
    return ends


def _markdown(text: str) -> tuple[list[Span], list[Span]]:
    """Return what is code, and where else no tag opens."""
    code: list[Span] = []
    inert: list[Span] = []
    paragraphs: list[Span] = []
    fence: tuple[int, str] | None = None
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if fence:
            if (closed := _closed(line, fence[1])) is not None:
                code.append((fence[0], start + closed))
                fence = None
        elif opened := _FENCE.match(line):
            fence = (start + opened.start(1), opened.group(1))
        elif _QUOTE.match(line):
            inert.append((start, end))
        elif line.strip():
            _continue(paragraphs, start, end, anew=bool(_ITEM.match(line)))
        start = end + 1
    if fence:
        inert.append((fence[0], len(text)))
    return sorted([*code, *_code_spans(text, paragraphs)]), inert


def _closed(line: str, mark: str) -> int | None:
    """Return where on its line a fence ends, if this line ends it."""
    found = _FENCE_END.match(line)
    return found.end(1) if found and found.group(1).startswith(mark) else None


def _continue(paragraphs: list[Span], start: int, end: int, *, anew: bool) -> None:
    if paragraphs and paragraphs[-1][1] + 1 == start and not anew:
        start = paragraphs.pop()[0]
    paragraphs.append((start, end))


def _code_spans(text: str, paragraphs: Sequence[Span]) -> Iterator[Span]:
    """Give code spans: backticks up to the next ones of the same number in the paragraph."""
    for paragraph in paragraphs:
        runs = [found.span() for found in _TICKS.finditer(text, *paragraph)]
        closing = _next_of_same_size(runs)
        at = 0
        while at < len(runs):
            if (close := closing[at]) is not None:
                yield runs[at][0], runs[close][1]
                at = close
            at += 1


def _next_of_same_size(runs: Sequence[Span]) -> list[int | None]:
    found: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        size = runs[at][1] - runs[at][0]
        found[at] = latest.get(size)
        latest[size] = at
    return found


def _blanked(text: str, spans: Sequence[Span]) -> str:
    return _edited(text, [(start, end, " " * (end - start)) for start, end in spans])


def _edited(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the pieces replaced; edits are in order and do not overlap."""
    pieces: list[str] = []
    kept = 0
    for start, end, new in edits:
        pieces += (text[kept:start], new)
        kept = end
    return "".join((*pieces, text[kept:]))
