"""The queue's tables for people: lists to look at, and the few acts the queue allows on them."""

from __future__ import annotations

from queue_app.admin.dead_letters import DeadLetterAdmin
from queue_app.admin.history import AgentMessageAdmin, ChatMessageAdmin, ConversationAdmin
from queue_app.admin.messages import IntakeAdmin, MessageAdmin, ResponseAdmin
from queue_app.admin.records import AuditAdmin, EventAdmin, JobAdmin
from queue_app.admin.runs import LaneAdmin, ProcessAdmin, RunAdmin

__all__ = [
    "AgentMessageAdmin",
    "AuditAdmin",
    "ChatMessageAdmin",
    "ConversationAdmin",
    "DeadLetterAdmin",
    "EventAdmin",
    "IntakeAdmin",
    "JobAdmin",
    "LaneAdmin",
    "MessageAdmin",
    "ProcessAdmin",
    "ResponseAdmin",
    "RunAdmin",
]
