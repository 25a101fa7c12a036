"""Who gets what somebody sent: decided once, at intake, from values alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents_app import tags
from agents_app.roster import Addressee, Roster
from tinyoffice.errors import TinyOfficeError

_LEADING = re.compile(r"@(\S+)\s+(.*)", re.DOTALL)
_NAMED_AT_MOST = 10
_NAME_AT_MOST = 64


class UnknownAgent(TinyOfficeError):
    """The message is addressed to somebody who is not there, or not for this sender."""

    code = "unknown_agent"

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(
            f"No agent or team has the id '{name[:_NAME_AT_MOST]}' (known: {', '.join(known)}). "
            "Use one of these, or leave out `agent` to reach the default one."
        )


class NobodyToAsk(TinyOfficeError):
    """There is no agent that could get the message."""

    code = "nobody_to_ask"

    def __init__(self) -> None:
        super().__init__(
            "The message was not accepted: there is no agent that this sender may reach. "
            "Add an agent in the portal, or widen the sender's reach."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One addressee and what it reads; `team` when it was asked as the leader of one."""

    agent: str
    text: str
    team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a message goes, one row per target, and what its sender should be told at once."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()


def route(
    text: str,
    roster: Roster,
    *,
    addressed_to: str | None = None,
    reach: Collection[str] | None = None,
) -> Route:
    """Return who gets the text; `addressed_to` wins over a leading `@name`, that over `[@name: …]`.

    A `reach` of None is everybody. Who is out of reach is treated as unknown, so that a sender
    learns nothing of them.
    """
    roster = roster.within(reach)
    if roster.default is None:
        raise NobodyToAsk
    if addressed_to is not None:
        return Route(targets=(_chosen(text, addressed_to, roster),))
    if (found := _leading(text, roster)) is not None:
        addressee, body = found
        return Route(targets=(_target(addressee, body or text),))
    return _fan_out(text, roster, roster.default)


def _chosen(text: str, name: str, roster: Roster) -> Target:
    """Return the target of an explicit choice; a leading tag that says the same is dropped."""
    addressee = roster.find_id(name)
    if addressee is None:
        raise UnknownAgent(name, roster.ids)
    leading = _leading(text, roster)
    if leading is not None and leading[0] == addressee:
        return _target(addressee, leading[1] or text)
    return _target(addressee, text)


def _leading(text: str, roster: Roster) -> tuple[Addressee, str] | None:
    """Return whom the first word means and what follows it, if it is the tag of somebody known."""
    found = _LEADING.match(tags.clean(text))
    if found is None:
        return None
    name, body = found.groups()
    addressee = roster.find(name)
    if addressee is None and name[-1] in ":,":
        addressee = roster.find(name[:-1])
    return (addressee, body) if addressee else None


def _fan_out(text: str, roster: Roster, default: str) -> Route:
    """Give everybody who is tagged their own part behind what is said to all."""
    tagged = tags.parse(text)
    own, unknown = _sorted_out(tagged.direct, roster)
    if not own:
        notes = (_nobody_called(unknown) + f" @{default} was asked instead.",) if unknown else ()
        return Route(targets=(Target(agent=default, text=text),), notes=notes)
    shared = tagged.shared
    targets = tuple(
        _target(addressee, tags.addressed(shared, "\n\n".join(texts), addressee.agent))
        for addressee, texts in own.values()
    )
    return Route(targets=targets, notes=(_nobody_called(unknown),) if unknown else ())


def _sorted_out(
    found: Sequence[tags.Tag], roster: Roster
) -> tuple[dict[str, tuple[Addressee, list[str]]], list[str]]:
    """Return the texts of everybody known, by agent, and the names that nobody has."""
    own: dict[str, tuple[Addressee, list[str]]] = {}
    unknown: dict[str, None] = {}
    for tag in found:
        meant = {name: roster.find(name) for name in tag.names if tag.text}
        unknown |= dict.fromkeys(name for name, addressee in meant.items() if addressee is None)
        # A leader may be meant twice by one tag, in person and through the team.
        for agent in dict.fromkeys(one.agent for one in meant.values() if one):
            first = next(one for one in meant.values() if one and one.agent == agent)
            own.setdefault(agent, (first, []))[1].append(tag.text)
    return own, list(unknown)


def _target(addressee: Addressee, text: str) -> Target:
    return Target(agent=addressee.agent, team=addressee.team, text=text)


def _nobody_called(names: Sequence[str]) -> str:
    listed = ", ".join(f"@{name[:_NAME_AT_MOST]}" for name in names[:_NAMED_AT_MOST])
    others = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"Nobody you can write to is called {listed}{others}; that part was delivered to no one."
