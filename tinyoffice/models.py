"""What the office itself keeps: what the owner set, and who may come in."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

SCOPES = ["owner", "operator", "viewer", "channel", "run", "login"]


class Setting(models.Model):
    """A value the owner changes while the office runs."""

    key = models.TextField(primary_key=True)
    value = models.JSONField()
    updated_at = models.BigIntegerField()

    class Meta:
        db_table = "settings"

    def __str__(self) -> str:
        return self.key


class Token(models.Model):
    """A credential, stored as a digest; a login link is one with the scope `login`."""

    name = models.TextField()
    prefix = models.TextField()
    digest = models.TextField(unique=True)
    scope = models.TextField()
    run_id = models.BigIntegerField(null=True)
    created_at = models.BigIntegerField()
    expires_at = models.BigIntegerField(null=True)
    last_used_at = models.BigIntegerField(null=True)
    revoked_at = models.BigIntegerField(null=True)

    class Meta:
        db_table = "tokens"
        indexes = [models.Index(fields=["prefix"], name="tokens_by_prefix")]
        constraints = [
            models.CheckConstraint(name="tokens_scope_known", condition=Q(scope__in=SCOPES))
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.scope})"
