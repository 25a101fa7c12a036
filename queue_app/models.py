"""The queue's tables: names and columns as documented, times in integer milliseconds.

Queue and history tables hold ids as text, without foreign keys: rows outlive what they name.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queue_app.querysets import MessageQuerySet, ResponseQuerySet
from queue_app.states import (
    ConversationState,
    JobStatus,
    MessageStatus,
    ResponseStatus,
    RunOutcome,
)


def _status_is_one_of(
    choices: type[models.TextChoices], table: str, field: str
) -> models.CheckConstraint:
    return models.CheckConstraint(
        name=f"{table}_{field}_known", condition=Q(**{f"{field}__in": choices.values})
    )


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
            _status_is_one_of(MessageStatus, "messages", "status"),
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
            _status_is_one_of(ResponseStatus, "responses", "status"),
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
            _status_is_one_of(ConversationState, "conversations", "state"),
            models.CheckConstraint(
                name="conversations_open_counts", condition=Q(open__gte=0, messages__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return self.id


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

    def __str__(self) -> str:
        return f"{self.name} {self.pid}"


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
        constraints = [_status_is_one_of(JobStatus, "jobs", "status")]

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
