"""Agents, teams and what belongs to them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Agent(models.Model):
    """Somebody who answers. Whether it is paused is said by its lane, which claims read anyway."""

    id = models.TextField(primary_key=True)
    name = models.TextField()
    provider = models.TextField()
    model = models.TextField(db_default="")
    working_directory = models.TextField(null=True)
    system_prompt = models.TextField(null=True)
    prompt_file = models.TextField(null=True)
    limits = models.JSONField(default=dict)
    daily_budget = models.FloatField(null=True)
    batching = models.TextField(db_default="together")
    heartbeat_enabled = models.BooleanField(null=True)
    heartbeat_interval = models.IntegerField(null=True)
    extra = models.JSONField(default=dict)
    created_at = models.BigIntegerField()
    updated_at = models.BigIntegerField()

    class Meta:
        db_table = "agents"
        constraints = [
            models.CheckConstraint(
                name="agents_batching_known",
                condition=Q(batching__in=["together", "by_sender", "one"]),
            )
        ]

    def __str__(self) -> str:
        return self.id


class Team(models.Model):
    """Agents who work together under a leader."""

    id = models.TextField(primary_key=True)
    name = models.TextField()
    leader_agent = models.TextField()
    created_at = models.BigIntegerField()
    updated_at = models.BigIntegerField()

    class Meta:
        db_table = "teams"

    def __str__(self) -> str:
        return self.id


class Membership(models.Model):
    """An agent's place in a team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="memberships")
    position = models.IntegerField()

    class Meta:
        db_table = "team_members"
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["team", "agent"], name="team_members_once")]

    def __str__(self) -> str:
        return f"{self.agent_id} in {self.team_id}"


class CustomProvider(models.Model):
    """A compatible endpoint of the owner's choice."""

    id = models.TextField(primary_key=True)
    name = models.TextField()
    harness = models.TextField()
    base_url = models.TextField()
    api_key = models.TextField()
    model = models.TextField(db_default="")

    class Meta:
        db_table = "custom_providers"
        constraints = [
            models.CheckConstraint(
                name="custom_providers_harness_known",
                condition=Q(harness__in=["claude", "codex", "anthropic_api", "openai_api"]),
            )
        ]

    def __str__(self) -> str:
        return self.id


class Session(models.Model):
    """An AI program's memory for one agent and place."""

    agent_id = models.TextField()
    provider = models.TextField()
    thread = models.TextField(db_default="")
    session_id = models.TextField()
    state = models.TextField(db_default="new")
    updated_at = models.BigIntegerField()

    class Meta:
        db_table = "sessions"
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id", "provider", "thread"], name="sessions_one_per_place"
            ),
            models.CheckConstraint(
                name="sessions_state_known", condition=Q(state__in=["new", "started"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.provider} {self.session_id}"


class Spend(models.Model):
    """What one agent, team or the whole office reserved and spent on one day."""

    scope = models.TextField()
    day = models.TextField()
    reserved = models.FloatField(db_default=0.0)
    spent = models.FloatField(db_default=0.0)

    class Meta:
        db_table = "spend"
        constraints = [models.UniqueConstraint(fields=["scope", "day"], name="spend_once")]

    def __str__(self) -> str:
        return f"{self.scope} {self.day}"


class Schedule(models.Model):
    """A message sent to an agent at set times."""

    id = models.TextField(primary_key=True)
    label = models.TextField(unique=True)
    cron = models.TextField(db_default="")
    run_at = models.BigIntegerField(null=True)
    agent_id = models.TextField()
    message = models.TextField()
    channel = models.TextField(db_default="schedule")
    sender = models.TextField(db_default="Scheduler")
    enabled = models.BooleanField(db_default=True)
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "schedules"

    def __str__(self) -> str:
        return self.label


class DueTime(models.Model):
    """A time a schedule has fired for, so that it fires once whoever looks."""

    schedule_id = models.TextField()
    due_at = models.BigIntegerField()
    fired_at = models.BigIntegerField()

    class Meta:
        db_table = "due_times"
        constraints = [
            models.UniqueConstraint(fields=["schedule_id", "due_at"], name="due_times_once")
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.due_at}"
