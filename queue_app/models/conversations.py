"""What was sent, what it led to, and the history that outlives both."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from queue_app.models.constraints import one_of
from queue_app.states import ConversationState


class Intake(models.Model):
    """One thing somebody sent: the only duplicate check, kept longer than what it led to."""

    source = models.TextField()
    external_id = models.TextField()
    message_id = models.TextField()
    conversation_id = models.TextField()
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "intakes"
        indexes = [models.Index(fields=["created_at"], name="intakes_by_age")]
        constraints = [
            models.UniqueConstraint(fields=["source", "external_id"], name="intakes_once")
        ]

    def __str__(self) -> str:
        return f"{self.source}:{self.external_id}"


class Conversation(models.Model):
    """One root message and all it caused; its id is the root's message_id."""

    id = models.TextField(primary_key=True)
    person = models.TextField()
    team = models.TextField(null=True)
    messages = models.IntegerField(db_default=0)
    posts = models.IntegerField(db_default=0)
    open = models.IntegerField(db_default=0)
    cost = models.FloatField(db_default=0.0)
    last_at = models.BigIntegerField()
    state = models.TextField(choices=ConversationState, db_default=ConversationState.OPEN)

    class Meta:
        db_table = "conversations"
        indexes = [
            models.Index(fields=["last_at"], condition=Q(state="open"), name="conversations_open")
        ]
        constraints = [
            one_of(ConversationState, "conversations", "state"),
            models.CheckConstraint(
                name="conversations_open_counts", condition=Q(open__gte=0, messages__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return self.id


class ChatMessage(models.Model):
    """A post in a team's room; append-only."""

    team_id = models.TextField()
    from_agent = models.TextField()
    message = models.TextField()
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "chat_messages"
        indexes = [models.Index(fields=["team_id", "id"], name="chat_messages_of_team")]

    def __str__(self) -> str:
        return f"post {self.pk} in {self.team_id}"


class AgentMessage(models.Model):
    """A line of an agent's history, as received or as answered; append-only."""

    agent_id = models.TextField()
    role = models.TextField()
    channel = models.TextField()
    sender = models.TextField()
    message_id = models.TextField()
    content = models.TextField()
    created_at = models.BigIntegerField()
    conversation_id = models.TextField(null=True)

    class Meta:
        db_table = "agent_messages"
        indexes = [
            models.Index(fields=["agent_id", "id"], name="agent_messages_of_agent"),
            models.Index(fields=["conversation_id", "id"], name="agent_messages_of_talk"),
        ]
        constraints = [
            models.CheckConstraint(
                name="agent_messages_role_known", condition=Q(role__in=["user", "assistant"])
            )
        ]

    def __str__(self) -> str:
        return f"{self.role} line {self.pk} of {self.agent_id}"
