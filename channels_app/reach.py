"""Whom a sender may reach: the owner everybody, others what they were given."""

from __future__ import annotations

from collections.abc import Collection

from agents_app.roster import DEFAULT_AGENT
from channels_app.models import Sender
from queue_app.values import HeldMessage

OWNER = "owner"


def of_message(message: HeldMessage) -> Collection[str] | None:
    """Return the ids the sender of a message may reach, or None for everybody."""
    if message.person == OWNER:
        return None
    sender = Sender.objects.filter(
        channel=message.channel, sender_id=message.sender_id or message.sender, status="approved"
    ).first()
    if sender is None:
        return [DEFAULT_AGENT]
    return None if sender.is_owner else sender.reach or [DEFAULT_AGENT]
