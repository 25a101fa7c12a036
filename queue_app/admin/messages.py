"""What agents were asked, what they answered, and the keys that make each asked once."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from queue_app import queue
from queue_app.admin.acts import Act, carry_out
from queue_app.admin.base import ReadOnlyAdmin
from queue_app.admin.columns import CONVERSATION, MESSAGE, Column, Excerpt, Link, Moment, Status
from queue_app.admin.filters import (
    AgentFilter,
    ChannelFilter,
    MessageStatusFilter,
    ResponseStatusFilter,
)
from queue_app.models import Intake, Message, Response
from queue_app.models.messages import MessageQuerySet
from queue_app.states import MessageStatus

CANCEL = Act(
    do=queue.cancel,
    name="cancel",
    done="cancelled",
    missed="no longer pending",
    ask="They are not run; each becomes a dead letter, and its sender is told.",
)

# Each the order of the index over that status, so that no list is sorted.
_ORDERS: dict[str, tuple[str, ...]] = {
    MessageStatus.PENDING: ("agent", "available_at", "id"),
    MessageStatus.PROCESSING: ("run_id", "id"),
    MessageStatus.COMPLETED: ("-updated_at", "-id"),
    MessageStatus.DEAD: ("-updated_at", "-id"),
}


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """All messages, newest first; those of one status in the order of their line."""

    linked_by = ("message_id",)
    actions = ("cancel",)
    list_display = (
        Column("message_id", "message"),
        Status("status"),
        Column("agent"),
        Column("channel"),
        Column("sender"),
        Excerpt("message", "text"),
        Moment("created_at", "sent"),
    )
    list_filter = (MessageStatusFilter, AgentFilter, ChannelFilter)
    search_fields = ("message", "message_id", "sender")
    search_help_text = "Looks in the text, the message id and the sender's name."
    extra_lines = (
        Link("message_id", "responses", to="response", by="message_id", words="show responses"),
    )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the order of the line that is asked for."""
        return _ORDERS.get(request.GET.get("status", ""), self.ordering)

    @admin.action(description="Cancel the selected pending messages…", permissions=["triage"])
    def cancel(self, request: HttpRequest, rows: MessageQuerySet) -> TemplateResponse | None:
        """Move pending → dead, after asking."""
        return carry_out(self, request, rows.pending(), CANCEL)


@admin.register(Response)
class ResponseAdmin(ReadOnlyAdmin):
    """Answers on their way out, newest first."""

    linked_by = ("message_id",)
    list_display = (
        Column("id"),
        Status("status"),
        MESSAGE,
        Column("agent"),
        Column("channel"),
        Column("sender"),
        Excerpt("message", "text"),
        Moment("created_at"),
        Moment("acked_at", "delivered"),
    )
    list_filter = (ResponseStatusFilter, AgentFilter, ChannelFilter)
    search_fields = ("message", "message_id", "sender")
    search_help_text = "Looks in the text, the message id and the sender's name."


@admin.register(Intake)
class IntakeAdmin(ReadOnlyAdmin):
    """What somebody sent, newest first."""

    list_display = (
        Column("id"),
        Column("source"),
        Column("external_id"),
        MESSAGE,
        CONVERSATION,
        Moment("created_at"),
    )
    search_fields = ("external_id", "message_id")
    search_help_text = "Looks in the sender's own id and the message id."
