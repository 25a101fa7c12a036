"""The queue's tables: names and columns as documented, times in integer milliseconds.

Queue and history tables hold ids as text, without foreign keys: rows outlive what they name.
"""

from __future__ import annotations

from queue_app.models.conversations import AgentMessage, ChatMessage, Conversation, Intake
from queue_app.models.messages import Message, Response
from queue_app.models.records import Audit, Event, Job, Pin, Rollup
from queue_app.models.runs import Lane, Process, Run, RunMessage

__all__ = [
    "AgentMessage",
    "Audit",
    "ChatMessage",
    "Conversation",
    "Event",
    "Intake",
    "Job",
    "Lane",
    "Message",
    "Pin",
    "Process",
    "Response",
    "Rollup",
    "Run",
    "RunMessage",
]
