"""What agents are asked and what they answer, and the words for sets of both."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queue_app.models.constraints import one_of
from queue_app.states import MessageStatus, ResponseStatus


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


class Message(models.Model):
    """Something an agent is asked."""

    message_id = models.TextField(unique=True)
    channel = models.TextField()
    sender = models.TextField()
    sender_id = models.TextField(null=True)
    message = models.TextField()
    agent = models.TextField()
    files = models.TextField(null=True)
    conversation_id = models.TextField()
    from_agent = models.TextField(null=True)
    status = models.TextField(choices=MessageStatus, db_default=MessageStatus.PENDING)
    retry_count = models.IntegerField(db_default=0)
    last_error = models.TextField(null=True)
    claimed_by = models.TextField(null=True)
    created_at = models.BigIntegerField()
    updated_at = models.BigIntegerField()
    run_id = models.BigIntegerField(null=True)
    person = models.TextField()
    team = models.TextField(null=True)
    thread = models.TextField(null=True)
    parent_id = models.TextField(null=True)
    hop = models.IntegerField(db_default=0)
    available_at = models.BigIntegerField()
    error_class = models.TextField(null=True)
    manual_retries = models.IntegerField(db_default=0)

    objects: ClassVar[MessageQuerySet] = MessageQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "messages"
        indexes = [
            models.Index(
                fields=["agent", "available_at", "id"],
                condition=Q(status="pending"),
                name="messages_pending",
            ),
            models.Index(fields=["run_id"], condition=Q(status="processing"), name="messages_held"),
            models.Index(fields=["updated_at"], condition=Q(status="dead"), name="messages_dead"),
            models.Index(
                fields=["updated_at"], condition=Q(status="completed"), name="messages_done"
            ),
        ]
        constraints = [
            one_of(MessageStatus, "messages", "status"),
            models.CheckConstraint(
                name="messages_processing_has_run",
                condition=~Q(status="processing") | Q(run_id__isnull=False),
            ),
            models.CheckConstraint(
                name="messages_pending_has_no_run",
                condition=~Q(status="pending") | Q(run_id__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.message_id


class Response(models.Model):
    """An answer on its way to a person."""

    message_id = models.TextField()
    channel = models.TextField()
    sender = models.TextField()
    sender_id = models.TextField(null=True)
    message = models.TextField()
    original_message = models.TextField()
    agent = models.TextField(null=True)
    files = models.TextField(null=True)
    metadata = models.TextField(null=True)
    status = models.TextField(choices=ResponseStatus, db_default=ResponseStatus.PENDING)
    created_at = models.BigIntegerField()
    acked_at = models.BigIntegerField(null=True)
    conversation_id = models.TextField(null=True)
    thread = models.TextField(null=True)
    retry_count = models.IntegerField(db_default=0)
    available_at = models.BigIntegerField()
    last_error = models.TextField(null=True)
    parts_sent = models.IntegerField(db_default=0)
    provider_ref = models.TextField(null=True)
    run_id = models.BigIntegerField(null=True)

    objects: ClassVar[ResponseQuerySet] = ResponseQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "responses"
        indexes = [
            models.Index(
                fields=["channel", "available_at", "id"],
                condition=Q(status="pending"),
                name="responses_pending",
            ),
            models.Index(fields=["run_id"], condition=Q(status="sending"), name="responses_held"),
            models.Index(fields=["acked_at"], condition=Q(status="acked"), name="responses_acked"),
            models.Index(fields=["message_id"], name="responses_of_message"),
        ]
        constraints = [
            one_of(ResponseStatus, "responses", "status"),
            models.CheckConstraint(
                name="responses_sending_has_run",
                condition=~Q(status="sending") | Q(run_id__isnull=False),
            ),
            models.CheckConstraint(
                name="responses_acked_has_time",
                condition=~Q(status="acked") | Q(acked_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"response {self.pk} to {self.message_id}"
