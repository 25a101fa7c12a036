"""What is told, audited, worked on behind, kept and counted."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from queue_app.models.constraints import one_of
from queue_app.states import JobStatus


class Event(models.Model):
    """What watchers are told; written as the last statement of the change it tells of."""

    type = models.TextField()
    created_at = models.BigIntegerField()
    agent = models.TextField(null=True)
    conversation_id = models.TextField(null=True)
    data = models.TextField()

    class Meta:
        db_table = "events"
        indexes = [
            models.Index(fields=["created_at"], name="events_by_age"),
            models.Index(
                fields=["created_at"], condition=Q(type="agent_progress"), name="events_progress"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"


class Audit(models.Model):
    """Who changed what by hand; never pruned."""

    at = models.BigIntegerField()
    actor = models.TextField()
    action = models.TextField()
    subject = models.TextField()
    detail = models.TextField(null=True)

    class Meta:
        db_table = "audit"
        indexes = [models.Index(fields=["subject", "id"], name="audit_of_subject")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"


class Job(models.Model):
    """Long work done behind the office: bulk acts, backups, the data pipeline."""

    name = models.TextField()
    arguments = models.TextField(null=True)
    status = models.TextField(choices=JobStatus, db_default=JobStatus.PENDING)
    done = models.BigIntegerField(db_default=0)
    total = models.BigIntegerField(null=True)
    detail = models.TextField(null=True)
    error = models.TextField(null=True)
    requested_by = models.TextField()
    run_id = models.BigIntegerField(null=True)
    created_at = models.BigIntegerField()
    started = models.BigIntegerField(null=True)
    finished = models.BigIntegerField(null=True)
    stop_by = models.TextField(null=True)

    class Meta:
        db_table = "jobs"
        indexes = [models.Index(fields=["id"], condition=Q(status="pending"), name="jobs_pending")]
        constraints = [one_of(JobStatus, "jobs", "status")]

    def __str__(self) -> str:
        return f"{self.name} {self.pk}"


class Pin(models.Model):
    """A row that is not to be pruned before a time."""

    table = models.TextField()
    row_id = models.BigIntegerField()
    until = models.BigIntegerField()

    class Meta:
        db_table = "pins"
        constraints = [models.UniqueConstraint(fields=["table", "row_id"], name="pins_once")]

    def __str__(self) -> str:
        return f"{self.table} {self.row_id}"


class Rollup(models.Model):
    """Counts of one hour, for charts."""

    hour = models.BigIntegerField()
    metric = models.TextField()
    scope = models.TextField()
    value = models.FloatField(db_default=0.0)

    class Meta:
        db_table = "rollups"
        constraints = [
            models.UniqueConstraint(fields=["metric", "scope", "hour"], name="rollups_once")
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.scope} {self.hour}"
