"""Posts in a team's room: one row to read, one message for each member it wakes, all or none.

`conversations.posts` counts the agents' posts that wake others. Nothing can get past it or drop it:
`_admit` is the only way to a delivery by an agent, it counts in the statement that looks, in the
transaction that writes post and deliveries; nothing else writes the column, and conversations are
never deleted. A person's post begins a conversation of its own, with a count of its own. Copies
do not count as messages of the conversation, or one post in a large room would use up its handoffs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import F

from queue_app import clock, events, ids, limits, sql, wakeup
from queue_app.errors import BadInput, DuplicateMessage
from queue_app.events import NewEvent, clip
from queue_app.masking import mask
from queue_app.models import ChatMessage, Conversation
from queue_app.queue import rows
from queue_app.queue.intake import remember
from queue_app.states import ConversationState
from queue_app.values import Claim, NewPost, Posted

logger = logging.getLogger(__name__)

READ_AFTER = 2_000  # so that one run reads several posts
RESTS = "(The room rests: agents have written enough here. It wakes when a person writes.)"
_PREFIX = "chat"


def post_to_room(
    new: NewPost, *, source: str, external_id: str | None = None, now: int | None = None
) -> Posted:
    """Move (nothing) → pending for every member a person's post wakes; a repeat raises DuplicateMessage."""
    _check(new, source, external_id)
    at = clock.now() if now is None else now
    for _ in range(rows.DRAWS):
        root = ids.new_id(_PREFIX)
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                remember(cursor, source, external_id or root, root, at)
                told = _begin(cursor, new, root, at)
                events.record(cursor, told, now=at)
                transaction.on_commit(wakeup.ring)
        except rows.IdTaken:
            continue
        except DuplicateMessage:
            # Without a key of the sender's, the key is the drawn id: taken, not sent before.
            if external_id:
                raise
            continue
        logger.info("posted room=%s conversation=%s count=%d", new.team, root, len(new.deliveries))
        return _posted(told, root)
    raise RuntimeError(f"no free message id in {rows.DRAWS} draws")


def _check(new: NewPost, source: str, external_id: str | None) -> None:
    limits.identifier("source", source, most=64)
    if external_id is not None:
        limits.identifier("external_id", external_id)
    if not new.deliveries:
        raise BadInput(f"Room '{new.team}' has no members, so nobody would read it. Add a member.")


def post_for_run(
    cursor: CursorWrapper, claim: Claim, posts: Sequence[NewPost], now: int
) -> list[NewEvent]:
    """Write what a run posts, inside its completion; what finds no room is shown and wakes nobody."""
    primary = claim.primary
    place = rows.Place(
        conversation_id=primary.conversation_id, parent_id=primary.message_id, now=now
    )
    told: list[NewEvent] = []
    for new in posts:
        if new.deliveries and not _admit(new, place):
            refused = {"runId": claim.run_id, "messages": len(new.deliveries), "reason": RESTS}
            told.append(NewEvent("loop_stopped", primary.agent, place.conversation_id, refused))
            new = replace(new, message=f"{new.message}\n\n{RESTS}", deliveries=())
        told += _keep(cursor, new, place)
    return told


def _admit(new: NewPost, place: rows.Place) -> bool:
    """Count one more post of an agent and the copies that are now open, if the room does not rest."""
    awake = Conversation.objects.filter(pk=place.conversation_id, posts__lt=new.most)
    return bool(
        awake.update(
            posts=F("posts") + 1,
            open=F("open") + len(new.deliveries),
            state=ConversationState.OPEN,
            last_at=place.now,
        )
    )


def _begin(cursor: CursorWrapper, new: NewPost, root: str, now: int) -> list[NewEvent]:
    cursor.execute(
        sql.statements().INSERT_CONVERSATION,
        (root, new.deliveries[0].person, new.team, 1, len(new.deliveries), now),
    )
    if cursor.rowcount == 0:
        raise rows.IdTaken(root)
    return _keep(cursor, new, rows.Place(conversation_id=root, parent_id=None, now=now))


def _keep(cursor: CursorWrapper, new: NewPost, place: rows.Place) -> list[NewEvent]:
    """Insert the post and its deliveries; the one that begins a conversation has the conversation's id."""
    post = ChatMessage.objects.create(
        team_id=new.team,
        from_agent=new.from_agent,
        message=mask(new.message),
        created_at=place.now,
    )
    told: list[NewEvent] = []
    for number, delivery in enumerate(new.deliveries):
        later = replace(delivery, available_at=place.now + READ_AFTER)
        if number == 0 and place.parent_id is None:
            told.append(rows.put_in_line_as(cursor, later, place, place.conversation_id))
        else:
            told.append(rows.put_in_line(cursor, later, place, _PREFIX))
    data = {
        "postId": post.pk,
        "team": new.team,
        "fromAgent": new.from_agent,
        "message": clip(new.message),
        "delivered": len(told),
    }
    return [NewEvent("room_post", new.from_agent, place.conversation_id, data), *told]


def _posted(told: Sequence[NewEvent], root: str) -> Posted:
    delivered = [event for event in told if event.type == "message_enqueued"]
    return Posted(
        post_id=int(told[0].data["postId"]),
        message_ids=tuple(event.data["messageId"] for event in delivered),
        conversation_id=root,
    )
