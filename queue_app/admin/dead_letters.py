"""Dead letters: what ended dead, found by what went wrong, sent back or removed in bulk."""

from __future__ import annotations

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

from queue_app import queue
from queue_app.admin.acts import Act, carry_out
from queue_app.admin.base import ReadOnlyAdmin
from queue_app.admin.columns import Column, Excerpt, Moment
from queue_app.admin.filters import AgentFilter, ChannelFilter, DeadSinceFilter, ErrorClassFilter
from queue_app.models import Message

RETRY = Act(do=queue.retry_dead, name="retry", done="retried", missed="no longer dead")
DISCARD = Act(
    do=queue.discard_dead,
    name="discard",
    done="discarded",
    missed="no longer dead",
    ask="They are deleted; only the audit will keep them.",
)


class DeadLetter(Message):
    """A message that waits for a person's decision; the same row under a list of its own."""

    class Meta:
        proxy = True


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    """The dead, latest first; they have an index of their own, so all of them are counted."""

    windowed = False
    paginator = Paginator
    ordering = ("-updated_at", "-id")
    actions = ("retry", "discard")
    list_display = (
        Column("message_id", "message"),
        Column("agent"),
        Column("sender"),
        Excerpt("message", "text"),
        Column("error_class"),
        Excerpt("last_error"),
        Moment("updated_at", "dead since"),
    )
    list_filter = (AgentFilter, ChannelFilter, ErrorClassFilter, DeadSinceFilter)
    search_fields = ("message", "message_id", "sender")
    search_help_text = "Looks in the text, the message id and the sender's name."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        """Return the dead only."""
        return DeadLetter.objects.dead()

    @admin.action(description="Retry the selected dead letters", permissions=["triage"])
    def retry(self, request: HttpRequest, rows: QuerySet[Message]) -> TemplateResponse | None:
        """Move dead → pending."""
        return carry_out(self, request, rows, RETRY)

    @admin.action(description="Discard the selected dead letters…", permissions=["triage"])
    def discard(self, request: HttpRequest, rows: QuerySet[Message]) -> TemplateResponse | None:
        """Delete dead messages, after asking."""
        return carry_out(self, request, rows, DISCARD)
