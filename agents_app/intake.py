"""The one door in: whatever anybody sends is routed here, once, and put in line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from agents_app import roster, routing
from agents_app.routing import Route
from queue_app import limits, queue
from queue_app.values import Accepted, NewMessage, NewResponse, Submission

OWNER = "owner"
# Behind the owner's own login, token or shell; an edge that lets others in names the person.
OWNERS_CHANNELS = frozenset({"web", "api", "cli"})
# The office itself asks here, on the owner's behalf.
CLOCKS = frozenset({"heartbeat", "schedule"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """What somebody sends, and the address to answer to.

    Without a `reach`, the owner and the office's clocks reach everybody and others the default agent.
    """

    channel: str
    sender: str
    text: str
    source: str
    sender_id: str | None = None
    agent: str | None = None
    message_id: str | None = None
    external_id: str | None = None
    files: Sequence[str] = ()
    thread: str | None = None
    person: str | None = None
    reach: Collection[str] | None = None


def submit(inbound: Inbound, *, now: int | None = None) -> Accepted:
    """Route and accept what was sent; raise UnknownAgent, NobodyToAsk, BadInput or DuplicateMessage."""
    limits.text("message", inbound.text)
    person = person_of(inbound)
    route = routing.route(
        inbound.text,
        roster.load(),
        addressed_to=inbound.agent,
        reach=_reach(inbound, person),
    )
    new = _submission(inbound, route, person)
    if not route.notes:
        return queue.enqueue(new, now=now)
    # One transaction: either the message waits and its sender hears of it, or neither.
    with transaction.atomic():
        accepted = queue.enqueue(new, now=now)
        queue.respond(_note(inbound, route, accepted), now=now)
    return accepted


def person_of(inbound: Inbound) -> str:
    """Return whose message it is: the owner's, or that of the one sender behind the address."""
    if inbound.person is not None:
        return inbound.person
    if inbound.channel in OWNERS_CHANNELS:
        return OWNER
    person = f"{inbound.channel}:{inbound.sender_id or inbound.sender}"
    if len(limits.readable("sender", person)) <= limits.MAX_NAME:
        return person
    return f"{inbound.channel[:64]}:{hashlib.sha256(person.encode()).hexdigest()}"


def _reach(inbound: Inbound, person: str) -> Collection[str] | None:
    if inbound.reach is not None:
        return inbound.reach
    return None if person == OWNER or inbound.channel in CLOCKS else ()


def _submission(inbound: Inbound, route: Route, person: str) -> Submission:
    rows = [
        NewMessage(
            channel=inbound.channel,
            sender=inbound.sender,
            sender_id=inbound.sender_id,
            message=target.text,
            received=inbound.text,
            agent=target.agent,
            team=target.team,
            person=person,
            files=inbound.files,
            thread=inbound.thread,
        )
        for target in route.targets
    ]
    return Submission(
        source=inbound.source,
        messages=rows,
        external_id=inbound.external_id,
        message_id=inbound.message_id,
    )


def _note(inbound: Inbound, route: Route, accepted: Accepted) -> NewResponse:
    """Return what the sender hears at once; by its metadata nobody takes it for the answer."""
    return NewResponse(
        message_id=accepted.message_id,
        channel=inbound.channel,
        sender=inbound.sender,
        sender_id=inbound.sender_id,
        thread=inbound.thread,
        conversation_id=accepted.conversation_id,
        message="\n".join(route.notes),
        original_message=inbound.text,
        metadata=json.dumps({"note": True}),
    )
