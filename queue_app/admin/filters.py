"""Filters whose choices are known without reading the table they filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from queue_app import clock, ids
from queue_app.events import EVENTS
from queue_app.faults import ErrorClass
from queue_app.models import Lane
from queue_app.states import (
    ConversationState,
    JobStatus,
    MessageStatus,
    ResponseStatus,
    RunOutcome,
)

MOST_CHOICES = 200

_HOUR = 3_600_000
_AGES = {"1h": _HOUR, "24h": 24 * _HOUR, "7d": 168 * _HOUR}


class Choice(SimpleListFilter):
    """One value of a column."""

    column: str
    parameter_name: str

    def known(self) -> Iterable[str]:
        """Return the values to choose from."""
        raise NotImplementedError

    def narrows(self) -> bool:
        """Tell whether an index makes the rows left few, however long the table is."""
        return False

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the known values, and the one in use."""
        values = [*self.known()]
        if (used := self.value()) and used not in values:
            values.append(used)
        return [(value, value.replace("_", " ")) for value in values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows with the chosen value."""
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


class AgentFilter(Choice):
    """Agents are known by their lanes."""

    title = "agent"
    parameter_name = "agent"
    column = "agent"

    def known(self) -> Iterable[str]:
        """Return the agents that were ever asked something."""
        return _lanes("agent:")


class HistoryAgentFilter(AgentFilter):
    """The same agents, under the history's column."""

    column = "agent_id"


class ChannelFilter(Choice):
    """The office's own channels and those that ever had a lane."""

    title = "channel"
    parameter_name = "channel"
    column = "channel"

    def known(self) -> Iterable[str]:
        """Return the channels in the order of the alphabet."""
        return sorted({*ids.PREFIXES, *_lanes("channel:")})


class ErrorClassFilter(Choice):
    """What went wrong."""

    title = "error class"
    parameter_name = "error_class"
    column = "error_class"

    def known(self) -> Iterable[str]:
        """Return every class of error."""
        return ErrorClass.values


class EventTypeFilter(Choice):
    """What watchers were told."""

    title = "type"
    parameter_name = "type"
    column = "type"

    def known(self) -> Iterable[str]:
        """Return every event there is."""
        return EVENTS


class MessageStatusFilter(Choice):
    """Where a message is; all but completed ones are few and have an index of their own."""

    title = "status"
    parameter_name = "status"
    column = "status"

    def known(self) -> Iterable[str]:
        """Return every status."""
        return MessageStatus.values

    def narrows(self) -> bool:
        """Tell whether live or dead messages are asked for."""
        return self.value() in {
            MessageStatus.PENDING,
            MessageStatus.PROCESSING,
            MessageStatus.DEAD,
        }


class ResponseStatusFilter(Choice):
    """Where an answer is."""

    title = "status"
    parameter_name = "status"
    column = "status"

    def known(self) -> Iterable[str]:
        """Return every status."""
        return ResponseStatus.values


class JobStatusFilter(Choice):
    """Where a job is."""

    title = "status"
    parameter_name = "status"
    column = "status"

    def known(self) -> Iterable[str]:
        """Return every status."""
        return JobStatus.values


class OutcomeFilter(Choice):
    """How a run ended, or that it goes on."""

    title = "outcome"
    parameter_name = "outcome"
    column = "outcome"

    def known(self) -> Iterable[str]:
        """Return every outcome, and going on."""
        return ["going_on", *RunOutcome.values]

    def narrows(self) -> bool:
        """Tell whether only running ones are asked for."""
        return self.value() == "going_on"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the runs with that outcome; running ones have none."""
        if self.value() == "going_on":
            return queryset.filter(finished__isnull=True)
        return super().queryset(request, queryset)


class StateFilter(SimpleListFilter):
    """Open conversations unless others are asked for."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer what is not shown by itself."""
        return [(ConversationState.CLOSED, "closed"), ("all", "all")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Call the list without a choice by its name."""
        unchosen, *others = super().choices(changelist)
        yield {**unchosen, "display": "open"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Model]:
        """Keep the conversations in that state."""
        if self.value() == "all":
            return queryset
        return queryset.filter(state=self.value() or ConversationState.OPEN)


class DeadSinceFilter(SimpleListFilter):
    """How long a message has been dead."""

    title = "dead since"
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the last hour, day and week, and what is older."""
        return [
            ("1h", "the last hour"),
            ("24h", "the last 24 hours"),
            ("7d", "the last 7 days"),
            ("older", "longer than 7 days"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Model]:
        """Keep the messages that died then."""
        if self.value() == "older":
            return queryset.filter(updated_at__lt=clock.now() - _AGES["7d"])
        if span := _AGES.get(self.value() or ""):
            return queryset.filter(updated_at__gte=clock.now() - span)
        return queryset


def _lanes(prefix: str) -> list[str]:
    lanes = Lane.objects.filter(name__startswith=prefix).order_by("name")
    names = lanes.values_list("name", flat=True)[:MOST_CHOICES]
    return [name.removeprefix(prefix) for name in names]
