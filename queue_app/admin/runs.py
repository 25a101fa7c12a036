"""Who holds what: runs with the messages they were given, lanes, and the processes behind."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.html import format_html_join

from queue_app import queue
from queue_app.admin.acts import Act, carry_out
from queue_app.admin.base import ReadOnlyAdmin
from queue_app.admin.columns import (
    MESSAGE,
    NOTHING,
    RUN,
    Column,
    Excerpt,
    Flag,
    Moment,
    Status,
)
from queue_app.admin.filters import AgentFilter, ErrorClassFilter, OutcomeFilter
from queue_app.models import Lane, Process, Run, RunMessage

MOST_GIVEN = 100

STOP = Act(
    do=queue.request_stop,
    name="stop",
    done="asked to stop",
    missed="no longer going on",
    since="started",
    ask="Each run ends; the message it works on becomes a dead letter, the others wait again.",
)


class Given(Column):
    """The messages a run was given, the primary first."""

    def __call__(self, row: Model) -> str:
        """Return a link to each."""
        given = RunMessage.objects.filter(run_id=row.pk).order_by("id")[:MOST_GIVEN]
        return (
            format_html_join("\n", "<div>{}</div>", ((MESSAGE(one),) for one in given)) or NOTHING
        )


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Every claim, newest first."""

    actions = ("stop",)
    list_display = (
        Column("id", "run"),
        Column("lane"),
        Status("outcome"),
        Moment("started"),
        Column("error_class"),
        Excerpt("error"),
        Column("wait_ms", "waited ms"),
        Column("run_ms", "ran ms"),
    )
    list_filter = (OutcomeFilter, AgentFilter, ErrorClassFilter)
    extra_lines = (Given("id", "messages"),)

    @admin.action(description="Stop the selected runs…", permissions=["triage"])
    def stop(self, request: HttpRequest, rows: QuerySet[Run]) -> TemplateResponse | None:
        """Ask the holders of running ones to end them, after asking."""
        return carry_out(self, request, rows.filter(finished__isnull=True), STOP)


@admin.register(Lane)
class LaneAdmin(ReadOnlyAdmin):
    """Exclusive rights by name, and who holds them."""

    windowed = False
    ordering = ("name",)
    list_display = (
        Column("name", "lane"),
        RUN,
        Column("holder"),
        Column("beat"),
        Moment("blocked_until"),
        Excerpt("blocked_reason"),
        Flag("paused"),
        Column("completed"),
    )
    search_fields = ("name",)


@admin.register(Process)
class ProcessAdmin(ReadOnlyAdmin):
    """The office's processes and their last pulse."""

    windowed = False
    ordering = ("holder",)
    list_display = (
        Column("holder"),
        Column("name"),
        Column("host"),
        Column("pid"),
        Moment("started"),
        Moment("pulse"),
        Excerpt("detail"),
    )
