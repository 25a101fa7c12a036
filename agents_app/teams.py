"""What an agent's answer hands on: to teammates and to rooms. Decides from values, enqueues nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models.functions import Length

from agents_app import rooms, tags
from agents_app.roster import Roster
from queue_app import limits
from queue_app.models import AgentMessage
from queue_app.values import HeldMessage, NewMessage, NewPost

IN_A_ROW = 6
SHORT = 200

_LABEL = 200  # more than the lines between what all are told and one's own part
_CUT = "\n\n(Cut here: the text is longer than a message can be.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One message between two agents of a conversation."""

    from_agent: str
    to_agent: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoffs:
    """What an answer leads to; `ignored` is for the log, `stopped` for the sender."""

    follow_ups: tuple[NewMessage, ...] = ()
    posts: tuple[NewPost, ...] = ()
    stopped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sorting:
    """Tags sorted by whom they reach; each once per answer, texts in order."""

    mates: dict[str, list[str]] = field(default_factory=dict)
    rooms: dict[str, list[str]] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)


def follow_ups(
    answer: str, batch: Sequence[HeldMessage], roster: Roster, recent: Sequence[Exchange] = ()
) -> Handoffs:
    """Return what the final text of the batch's run hands on; `roster` is what its sender may reach."""
    tagged = tags.parse(limits.legible(answer))
    primary = batch[0]
    team = roster.team_of(primary.agent, primary.team)
    mates = set(team.members) - {primary.agent} if team else set()
    found = _sort(tagged, primary.agent, mates, roster)
    new = [
        _handoff(batch, mate, team.id if team else None, tagged.shared, texts)
        for mate, texts in found.mates.items()
    ]
    stuck = [one for one in new if is_stuck(recent, _exchange(one))]
    return Handoffs(
        follow_ups=tuple(one for one in new if one not in stuck),
        posts=tuple(_posts(found.rooms, batch, roster)),
        stopped=tuple(_stuck(primary.agent, one.agent) for one in stuck),
        ignored=tuple(found.ignored),
    )


def is_stuck(recent: Sequence[Exchange], new: Exchange) -> bool:
    """Say whether two agents only nod to each other: six short ones in a row, and now another.

    `recent` is in order of time, the newest last.
    """
    pair = {new.from_agent, new.to_agent}
    last = recent[-IN_A_ROW:]
    return len(last) == IN_A_ROW and all(
        {one.from_agent, one.to_agent} == pair and one.length < SHORT for one in (*last, new)
    )


def recent_exchanges(conversation_id: str) -> list[Exchange]:
    """Read the latest messages of a conversation; history is read, since it outlives pruning."""
    lines = AgentMessage.objects.filter(conversation_id=conversation_id, role="user")
    newest = lines.order_by("-id").values_list("sender", "agent_id", Length("content"))[:IN_A_ROW]
    return [
        Exchange(from_agent=sender, to_agent=agent, length=length)
        for sender, agent, length in reversed(newest)
    ]


def _sort(tagged: tags.Tagged, writer: str, mates: set[str], roster: Roster) -> _Sorting:
    found = _Sorting()
    for tag in tagged.rooms:
        name = tag.names[0]
        if tag.text and rooms.of_writer(name, writer, roster):
            found.rooms.setdefault(name, []).append(tag.text)
        elif tag.text:
            found.ignored[f"#{name[:64]}"] = None
    for tag in tagged.direct:
        for name in dict.fromkeys(tag.names) if tag.text else ():
            if name in mates:
                found.mates.setdefault(name, []).append(tag.text)
            else:
                found.ignored[f"@{name[:64]}"] = None
    return found


def _handoff(
    batch: Sequence[HeldMessage], mate: str, team: str | None, shared: str, texts: Sequence[str]
) -> NewMessage:
    """Return a teammate's message; it keeps the person's address, so that the person is answered."""
    primary = batch[0]
    return NewMessage(
        channel=primary.channel,
        sender=primary.sender,
        sender_id=primary.sender_id,
        thread=primary.thread,
        person=primary.person,
        message=_message(shared, "\n\n".join(texts), mate),
        agent=mate,
        team=team,
        from_agent=primary.agent,
        hop=1 + max(row.hop for row in batch),
    )


def _posts(
    texts_of: dict[str, list[str]], batch: Sequence[HeldMessage], roster: Roster
) -> list[NewPost]:
    return [
        rooms.of_agent(_fitting("\n\n".join(texts), limits.MAX_TEXT), team, batch)
        for name, texts in texts_of.items()
        if (team := rooms.of_writer(name, batch[0].agent, roster))
    ]


def _message(shared: str, own: str, mate: str) -> str:
    """Return what a teammate reads; of a text that is too long, what all are told is cut first."""
    own = _fitting(own, limits.MAX_TEXT)
    left = limits.MAX_TEXT - len(own.encode()) - _LABEL
    return tags.addressed(_fitting(shared, left), own, mate)


def _fitting(text: str, most: int) -> str:
    """Return the text, cut to a number of bytes: an agent may write more than a message holds."""
    data = text.encode()
    if len(data) <= most:
        return text
    kept = most - len(_CUT)
    return data[:kept].decode(errors="ignore") + _CUT if kept > 0 else ""


def _exchange(new: NewMessage) -> Exchange:
    return Exchange(from_agent=new.from_agent or "", to_agent=new.agent, length=len(new.message))


def _stuck(writer: str, mate: str) -> str:
    return (
        f"(Handing this on was stopped: @{writer} and @{mate} wrote each other "
        f"{IN_A_ROW} short messages in a row.)"
    )
