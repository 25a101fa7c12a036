"""Who holds what: lanes, the runs that take them, and the processes behind."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from queue_app.states import RunOutcome


class Lane(models.Model):
    """An exclusive right, held by one run at a time; permanent, so that no fence ever repeats."""

    name = models.TextField(primary_key=True)
    run_id = models.BigIntegerField(null=True)
    holder = models.TextField(null=True)
    beat = models.BigIntegerField(db_default=0)
    blocked_until = models.BigIntegerField(null=True)
    blocked_reason = models.TextField(null=True)
    strikes = models.IntegerField(db_default=0)
    paused = models.BooleanField(db_default=False)
    completed = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "lanes"
        indexes = [
            models.Index(fields=["holder"], condition=Q(run_id__isnull=False), name="lanes_held")
        ]
        constraints = [
            models.CheckConstraint(
                name="lanes_run_has_holder",
                condition=Q(run_id__isnull=True, holder__isnull=True)
                | Q(run_id__isnull=False, holder__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Run(models.Model):
    """One claim; its id is the fence: never used again, so a stale holder can write nothing."""

    lane = models.TextField()
    agent = models.TextField(null=True)
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    attempt = models.IntegerField(db_default=1)
    host = models.TextField()
    pid = models.IntegerField(null=True)
    started = models.BigIntegerField()
    finished = models.BigIntegerField(null=True)
    wait_ms = models.BigIntegerField(null=True)
    run_ms = models.BigIntegerField(null=True)
    outcome = models.TextField(choices=RunOutcome, null=True)
    error_class = models.TextField(null=True)
    error = models.TextField(null=True)
    partial = models.TextField(null=True)
    exit_code = models.IntegerField(null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    cost = models.FloatField(null=True)
    stop_by = models.TextField(null=True)

    class Meta:
        db_table = "runs"
        indexes = [
            models.Index(fields=["agent", "id"], name="runs_of_agent"),
            models.Index(fields=["id"], condition=Q(finished__isnull=True), name="runs_going_on"),
        ]
        constraints = [
            models.CheckConstraint(
                name="runs_finished_has_outcome",
                condition=Q(finished__isnull=True, outcome__isnull=True)
                | Q(finished__isnull=False, outcome__in=RunOutcome.values),
            )
        ]

    def __str__(self) -> str:
        return f"run {self.pk} on {self.lane}"


class RunMessage(models.Model):
    """Which messages a run was given; outlives the messages."""

    run_id = models.BigIntegerField()
    message_id = models.TextField()
    parent_id = models.TextField(null=True)
    hop = models.IntegerField(db_default=0)

    class Meta:
        db_table = "run_messages"
        indexes = [
            models.Index(fields=["run_id"], name="run_messages_of_run"),
            models.Index(fields=["message_id"], name="run_messages_of_message"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} in run {self.run_id}"


class Process(models.Model):
    """A process of the office and its last pulse."""

    holder = models.TextField(primary_key=True)
    name = models.TextField()
    host = models.TextField()
    pid = models.IntegerField()
    started = models.BigIntegerField()
    pulse = models.BigIntegerField()
    detail = models.TextField(null=True)

    class Meta:
        db_table = "processes"
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return f"{self.name} {self.pid}"
