"""What watchers were told, what people changed by hand, and the long work behind the office."""

from __future__ import annotations

from django.contrib import admin

from queue_app.admin.base import ReadOnlyAdmin
from queue_app.admin.columns import CONVERSATION, RUN, Column, Excerpt, Moment, Status
from queue_app.admin.filters import AgentFilter, EventTypeFilter, JobStatusFilter
from queue_app.models import Audit, Event, Job


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Events, newest first."""

    list_display = (
        Column("id"),
        Column("type"),
        Column("agent"),
        CONVERSATION,
        Excerpt("data"),
        Moment("created_at"),
    )
    list_filter = (EventTypeFilter, AgentFilter)
    search_fields = ("data",)
    search_help_text = "Looks in what was told."


@admin.register(Audit)
class AuditAdmin(ReadOnlyAdmin):
    """Who changed what by hand, newest first."""

    linked_by = ("subject",)
    list_display = (
        Column("id"),
        Column("actor"),
        Column("action"),
        Column("subject"),
        Excerpt("detail"),
        Moment("at"),
    )
    search_fields = ("actor", "action", "subject", "detail")
    search_help_text = "Looks in who, what, on what, and the detail."


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Background work, newest first."""

    list_display = (
        Column("id"),
        Column("name"),
        Status("status"),
        Column("done"),
        Column("total"),
        Excerpt("detail"),
        Excerpt("error"),
        Column("requested_by"),
        RUN,
        Moment("created_at"),
        Moment("finished"),
    )
    list_filter = (JobStatusFilter,)
