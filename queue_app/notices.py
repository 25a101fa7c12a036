"""What the office itself says to people; pure."""

from __future__ import annotations

from queue_app.values import HeldMessage, NewResponse

_QUOTED = 120


def given_up(message: HeldMessage, reason: str) -> NewResponse:
    """Return the one notice a sender gets when their message ends dead."""
    asked = " ".join(message.message.split())
    quoted = asked if len(asked) <= _QUOTED else asked[: _QUOTED - 1] + "…"
    return NewResponse(
        message_id=message.message_id,
        channel=message.channel,
        sender=message.sender,
        sender_id=message.sender_id,
        thread=message.thread,
        conversation_id=message.conversation_id,
        agent=message.agent,
        original_message=message.message,
        message=(
            f"@{message.agent} could not answer “{quoted}”: {reason} "
            "It is kept under Dead letters, where it can be retried or discarded."
        ),
    )
