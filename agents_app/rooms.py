"""A team's room: who is woken by a post, and the door by which people post."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents_app import roster
from agents_app.roster import Roster, TeamEntry
from queue_app import queue
from queue_app.batches import ROOM
from queue_app.values import HeldMessage, NewMessage, NewPost, Posted
from tinyoffice.errors import TinyOfficeError

PERSON = "user"  # who wrote, when it was no agent
POSTS_PER_MEMBER = 3


class UnknownTeam(TinyOfficeError):
    """There is no such team, or not for this sender."""

    code = "unknown_team"

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(
            f"No team has the id '{name[:64]}' (known: {', '.join(known) or 'none'}). "
            "Post to one of these, or make the team and give it members."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomMessage:
    """What a person writes in a room."""

    team: str
    text: str
    sender: str
    person: str
    source: str
    sender_id: str | None = None
    external_id: str | None = None
    reach: Collection[str] | None = None


def post(new: RoomMessage, *, now: int | None = None) -> Posted:
    """Post for a person and wake every member; raise UnknownTeam, BadInput or DuplicateMessage."""
    known = roster.load().within(new.reach)
    team = known.team(new.team.strip().lower())
    if team is None:
        raise UnknownTeam(new.team, [team.id for team in known.teams])
    return queue.post_to_room(
        of_person(new, team), source=new.source, external_id=new.external_id, now=now
    )


def of_person(new: RoomMessage, team: TeamEntry) -> NewPost:
    """Return a person's post, which wakes every member."""
    deliveries = [
        NewMessage(
            channel=ROOM,
            sender=new.sender,
            sender_id=new.sender_id,
            message=new.text,
            agent=member,
            person=new.person,
            team=team.id,
            from_agent=PERSON,
        )
        for member in team.members
    ]
    return NewPost(team=team.id, from_agent=PERSON, message=new.text, deliveries=deliveries)


def of_agent(text: str, team: TeamEntry, batch: Sequence[HeldMessage]) -> NewPost:
    """Return an agent's post, which wakes every other member and counts towards the room's rest."""
    primary = batch[0]
    deliveries = [
        NewMessage(
            channel=ROOM,
            sender=primary.sender,
            sender_id=primary.sender_id,
            message=text,
            agent=member,
            person=primary.person,
            team=team.id,
            from_agent=primary.agent,
            hop=1 + max(row.hop for row in batch),
        )
        for member in team.members
        if member != primary.agent
    ]
    return NewPost(
        team=team.id,
        from_agent=primary.agent,
        message=text,
        deliveries=deliveries,
        most=POSTS_PER_MEMBER * len(team.members),
    )


def of_writer(name: str, writer: str, known: Roster) -> TeamEntry | None:
    """Return the team whose room an agent may write in, by its very id."""
    team = known.team(name)
    return team if team and writer in team.members else None
