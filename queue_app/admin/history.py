"""Conversations and the two histories that outlive the queue: of agents and of rooms."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from queue_app.admin.base import ReadOnlyAdmin
from queue_app.admin.columns import CONVERSATION, MESSAGE, Column, Excerpt, Link, Moment, Status
from queue_app.admin.filters import ChannelFilter, HistoryAgentFilter, StateFilter
from queue_app.models import AgentMessage, ChatMessage, Conversation


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    """Open conversations by their last sign of life; closed ones by id."""

    windowed = False
    list_display = (
        Column("id", "conversation"),
        Status("state"),
        Column("person"),
        Column("team"),
        Column("messages"),
        Column("posts"),
        Column("open", "open ends"),
        Column("cost"),
        Moment("last_at", "last sign of life"),
    )
    list_filter = (StateFilter,)
    search_fields = ("id__exact",)
    search_help_text = "Finds a conversation by its whole id."
    extra_lines = (
        Link("id", "history", to="agentmessage", by="conversation_id", words="show history"),
    )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Return an order that has an index: only open ones have one by time."""
        return ("-pk",) if request.GET.get("state") else ("-last_at", "-pk")


@admin.register(ChatMessage)
class ChatMessageAdmin(ReadOnlyAdmin):
    """Posts in the teams' rooms, newest first."""

    linked_by = ("team_id",)
    list_display = (
        Column("id"),
        Link("team_id", "team", to="chatmessage", by="team_id"),
        Column("from_agent"),
        Excerpt("message", "text"),
        Moment("created_at"),
    )
    search_fields = ("message", "from_agent")
    search_help_text = "Looks in the text and the author's name."


@admin.register(AgentMessage)
class AgentMessageAdmin(ReadOnlyAdmin):
    """What agents were told and answered, newest first."""

    linked_by = ("agent_id", "conversation_id")
    list_display = (
        Column("id"),
        Link("agent_id", "agent", to="agentmessage", by="agent_id"),
        Column("role"),
        Column("channel"),
        Column("sender"),
        Excerpt("content", "text"),
        MESSAGE,
        CONVERSATION,
        Moment("created_at"),
    )
    list_filter = (HistoryAgentFilter, ChannelFilter)
    search_fields = ("content", "message_id", "sender")
    search_help_text = "Looks in the text, the message id and the sender's name."
