"""People on platforms, and whom their chats talk to."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Sender(models.Model):
    """Somebody on a platform, and what they may do here."""

    channel = models.TextField()
    sender_id = models.TextField()
    sender = models.TextField()
    status = models.TextField(db_default="pending")
    code = models.TextField(null=True, unique=True)
    is_owner = models.BooleanField(db_default=False)
    rights = models.JSONField(default=list)
    reach = models.JSONField(default=list)
    created_at = models.BigIntegerField()
    last_seen_at = models.BigIntegerField()
    approved_at = models.BigIntegerField(null=True)
    approved_code = models.TextField(null=True)

    class Meta:
        db_table = "senders"
        constraints = [
            models.UniqueConstraint(fields=["channel", "sender_id"], name="senders_once"),
            models.CheckConstraint(
                name="senders_status_known",
                condition=Q(status__in=["pending", "approved", "blocked"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel}:{self.sender_id}"


class ChatDefault(models.Model):
    """The agent or team a chat talks to when it names nobody."""

    channel = models.TextField()
    chat_id = models.TextField()
    target = models.TextField()

    class Meta:
        db_table = "chat_defaults"
        constraints = [
            models.UniqueConstraint(fields=["channel", "chat_id"], name="chat_defaults_once")
        ]

    def __str__(self) -> str:
        return f"{self.channel}:{self.chat_id} → {self.target}"
