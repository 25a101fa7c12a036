"""The words the code uses for sets of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from queue_app.states import MessageStatus, ResponseStatus

if TYPE_CHECKING:
    pass


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages by where they are in life."""

    def pending(self) -> MessageQuerySet:
        """Accepted and waiting."""
        return self.filter(status=MessageStatus.PENDING)

    def processing(self) -> MessageQuerySet:
        """Held by a run."""
        return self.filter(status=MessageStatus.PROCESSING)

    def dead(self) -> MessageQuerySet:
        """Waiting for a person's decision."""
        return self.filter(status=MessageStatus.DEAD)

    def for_agent(self, agent: str) -> MessageQuerySet:
        """Addressed to one agent."""
        return self.filter(agent=agent)

    def in_line(self) -> MessageQuerySet:
        """In the order they are taken."""
        return self.order_by("available_at", "id")


class ResponseQuerySet(models.QuerySet["Response"]):
    """Responses by where they are on their way out."""

    def pending(self) -> ResponseQuerySet:
        """Waiting for their channel."""
        return self.filter(status=ResponseStatus.PENDING)

    def for_channel(self, channel: str) -> ResponseQuerySet:
        """To be delivered by one channel."""
        return self.filter(channel=channel)
