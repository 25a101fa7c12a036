"""Acts on many rows: each row a guarded transaction of the queue, the whole one report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

from queue_app.admin.base import ReadOnlyAdmin
from queue_app.errors import QueueError

AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What is done to each row, and the words for it."""

    do: Callable[[int, str], None]
    name: str  # of the admin's action
    done: str  # "3 retried"
    missed: str  # "1 was no longer dead"
    since: str = "updated_at"  # the column that tells when a row came to be as it is
    ask: str = ""  # what cannot be undone; asked before, when given


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many rows an act moved and how many it was refused."""

    moved: int
    refused: int

    def sentence(self, act: Act) -> str:
        """Tell both, such as "3 retried, 1 was no longer dead"."""
        told = f"{self.moved} {act.done}"
        if not self.refused:
            return f"{told}."
        return f"{told}, {self.refused} {'was' if self.refused == 1 else 'were'} {act.missed}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows that were ticked, or all that a list holds and held when it was asked for."""

    ticked: tuple[str, ...]
    everything: QuerySet[Any] | None = None
    until: int = 0

    @classmethod
    def of(cls, request: HttpRequest, rows: QuerySet[Any], act: Act) -> Selection:
        """Read a posted list; `rows` are those of its filters that the act can move."""
        ticked = tuple(request.POST.getlist(ACTION_CHECKBOX_NAME))
        if request.POST.get("select_across") != "1":
            return cls(ticked=ticked)
        # By the rows' own times: what comes later, or comes back, was not meant.
        posted = request.POST.get("until", "")
        latest = None if posted.isdecimal() else rows.aggregate(at=Max(act.since))["at"]
        until = int(posted) if posted.isdecimal() else latest or 0
        return cls(
            ticked=ticked, everything=rows.filter(**{f"{act.since}__lte": until}), until=until
        )

    def count(self) -> int:
        """Return how many rows are meant."""
        return len(self.ticked) if self.everything is None else self.everything.count()

    def ids(self, act: Act) -> Iterable[int]:
        """Return the rows' ids; those of a whole list in pages."""
        if self.everything is None:
            return (int(row_id) for row_id in self.ticked)
        return _paged(self.everything, act.since)


def carry_out(
    admin: ReadOnlyAdmin, request: HttpRequest, rows: QuerySet[Any], act: Act
) -> TemplateResponse | None:
    """Do an act on the posted selection and report it; ask first when it cannot be undone."""
    selection = Selection.of(request, rows, act)
    if act.ask and "confirmed" not in request.POST:
        return _question(admin, request, selection, act)
    tally = perform(act, selection.ids(act), request.user.get_username())
    level = messages.WARNING if tally.refused else messages.SUCCESS
    admin.message_user(request, tally.sentence(act), level)
    return None


def perform(act: Act, row_ids: Iterable[int], by: str) -> Tally:
    """Do an act on each row, leaving others room to write; a refusal stops nothing."""
    moved = refused = 0
    for row_id in row_ids:
        began = time.monotonic()
        try:
            act.do(row_id, by)
            moved += 1
        except QueueError:
            refused += 1
        # As long as the transaction took: a writer in a tight loop starves the processor.
        time.sleep(time.monotonic() - began)
    return Tally(moved=moved, refused=refused)


def _question(
    admin: ReadOnlyAdmin, request: HttpRequest, selection: Selection, act: Act
) -> TemplateResponse:
    context = {
        **admin.admin_site.each_context(request),
        "title": "Are you sure?",
        "opts": admin.opts,
        "media": admin.media,
        "act": act,
        "selection": selection,
        "count": selection.count(),
        "list_address": request.get_full_path(),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/queue_app/confirm.html", context)


def _paged(rows: QuerySet[Any], since: str) -> Iterator[int]:
    at, last = -1, -1
    while True:
        behind = Q(**{f"{since}__gt": at}) | Q(pk__gt=last)
        page = rows.filter(behind, **{f"{since}__gte": at}).order_by(since, "pk")
        found = list(page.values_list(since, "pk")[:AT_ONCE])
        if not found:
            return
        yield from (row_id for _, row_id in found)
        at, last = found[-1]
