"""How a value is shown: times as UTC with their age, texts masked, long ones shortened in lists.

A column names the field it reads, so that a list loads no other. It names no field to sort by:
that would sort the whole table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html

from queue_app import clock
from queue_app.masking import mask

SHORT = 80
# Read before a text is masked and shortened: a secret that is cut off would not be recognised.
START = 4_000
NOTHING = "-"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_JSON_FIELDS = frozenset({"arguments", "data", "detail", "files", "metadata"})
_TIME_FIELDS = frozenset(
    {
        "acked_at",
        "at",
        "available_at",
        "blocked_until",
        "created_at",
        "finished",
        "last_at",
        "pulse",
        "started",
        "updated_at",
    }
)


def age(at: int, now: int) -> str:
    """Return how far a time lies from now, in its largest whole unit."""
    seconds = abs(now - at) // 1000
    size, unit = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    distance = f"{seconds // size} {unit}"
    return f"{distance} ago" if at <= now else f"in {distance}"


def shorten(text: str) -> str:
    """Return a text as one line of a list, secrets masked."""
    line = " ".join(mask(text).split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1].rstrip()}…"


@dataclass(frozen=True)
class Column:
    """A short value, masked; the way the admin wants a callable to look."""

    field: str
    label: str = ""

    @property
    def __name__(self) -> str:
        return f"column_{self.field}"

    @property
    def short_description(self) -> str:
        """Return the heading."""
        return self.label or self.field.replace("_", " ")

    def __call__(self, row: Model) -> str:
        """Return what is shown for a row."""
        value = getattr(row, self.field)
        return NOTHING if value in (None, "") else self.show(value)

    def show(self, value: Any) -> str:
        """Return what is shown for a value."""
        return shorten(str(value))


class Flag(Column):
    """Whether something holds; said only where it does."""

    def show(self, value: Any) -> str:
        """Return a yes, or nothing."""
        return "yes" if value else NOTHING


class Moment(Column):
    """A time in milliseconds, as UTC with its age."""

    def show(self, value: Any) -> str:
        """Return the time; one that no calendar holds stays a number."""
        try:
            moment = _EPOCH + timedelta(milliseconds=value)
        except OverflowError:
            return str(value)
        return format_html(
            '<time datetime="{}">{}</time> <span class="age">{}</span>',
            moment.isoformat(),
            f"{moment:%Y-%m-%d %H:%M:%S} UTC",
            age(value, clock.now()),
        )


class Status(Column):
    """A state, marked so that dead and failed ones stand out."""

    def show(self, value: Any) -> str:
        """Return the state with its mark."""
        return format_html('<span class="state state-{}">{}</span>', value, value)


class Excerpt(Column):
    """The beginning of a text that may be long; the list reads no more of it."""

    @property
    def start(self) -> str:
        """Return the name under which the list reads the beginning."""
        return f"{self.field}_start"

    def __call__(self, row: Model) -> str:
        """Return the beginning as one line."""
        text = getattr(row, self.start)
        if text in (None, ""):
            return NOTHING
        return format_html('<span class="excerpt">{}</span>', shorten(text))


class Text(Column):
    """A whole text, masked, its lines kept; JSON is laid out."""

    def show(self, value: Any) -> str:
        """Return the text as a block when it is long."""
        text = mask(_laid_out(value) if self.field in _JSON_FIELDS else str(value))
        if len(text) <= SHORT and "\n" not in text:
            return text
        return format_html('<pre class="text">{}</pre>', text)


@dataclass(frozen=True)
class Link(Column):
    """A value that leads to a page of `to`, or to its list filtered `by` an indexed column."""

    to: str = ""
    by: str = ""
    words: str = ""

    def show(self, value: Any) -> str:
        """Return the value, or the given words, as a link."""
        if self.by:
            query = urlencode({self.by: value})
            address = f"{reverse(f'admin:queue_app_{self.to}_changelist')}?{query}"
        else:
            address = reverse(f"admin:queue_app_{self.to}_change", args=[quote(value)])
        return format_html('<a href="{}">{}</a>', address, self.words or shorten(str(value)))


CONVERSATION = Link("conversation_id", "conversation", to="conversation")
RUN = Link("run_id", "run", to="run")
MESSAGE = Link("message_id", "message", to="message", by="message_id")


def line(field: str) -> Column:
    """Return how a row's own page shows a field."""
    if field in _TIME_FIELDS:
        return Moment(field)
    known: dict[str, Column] = {
        "conversation_id": CONVERSATION,
        "outcome": Status("outcome"),
        "paused": Flag("paused"),
        "run_id": RUN,
        "status": Status("status"),
    }
    return known.get(field) or Text(field)


def _laid_out(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text
