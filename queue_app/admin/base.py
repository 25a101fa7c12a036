"""Lists that only show, and whose cost does not grow with the table behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_permission_codename
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property
from django.utils.text import capfirst

from queue_app.admin.columns import START, Column, Excerpt, line
from queue_app.admin.filters import Choice

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    RowPaginator = Paginator[Any]
else:
    ModelAdmin, RowPaginator = admin.ModelAdmin, Paginator

MOST_SEARCHED = 100_000


class BoundedPaginator(RowPaginator):
    """Pages through the first rows of a list and counts no further."""

    most = 10_000

    @cached_property
    def _found(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[: self.most + 1].count()

    @cached_property
    def count(self) -> int:
        """Return how many rows can be paged to."""
        return min(self._found, self.most)

    @property
    def capped(self) -> bool:
        """Tell whether there is more than can be paged to."""
        return self._found > self.most


class BoundedChangeList(ChangeList):
    """A list that reads only what it shows; its columns cannot be sorted by."""

    model_admin: ReadOnlyAdmin

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Any]:
        """Return the rows asked for, searched no further back than the window."""
        rows = super().get_queryset(request, exclude_parameters)
        if self.reaches_back:
            newest = self.root_queryset.order_by("-pk").values_list("pk", flat=True).first() or 0
            rows = rows.filter(pk__gt=newest - self.reaches_back)
        columns = [column for column in self.list_display if isinstance(column, Column)]
        long = {column.start: Substr(column.field, 1, START) for column in _excerpts(columns)}
        short = [column.field for column in columns if not isinstance(column, Excerpt)]
        shown: QuerySet[Any] = rows.only("pk", *short).annotate(**long)
        return shown

    def get_results(self, request: HttpRequest) -> None:
        """Take the page; rows that came after the count are left for the next look."""
        super().get_results(request)
        self.result_list = self.result_list[: self.list_max_show_all]

    @property
    def reaches_back(self) -> int | None:
        """Return how many rows are looked through; None when an index finds the right ones."""
        if not self.model_admin.windowed or not (self.query or self.has_active_filters):
            return None
        narrowed = any(isinstance(spec, Choice) and spec.narrows() for spec in self.filter_specs)
        return None if narrowed else MOST_SEARCHED


class ReadOnlyAdmin(ModelAdmin):
    """A table to look at: nothing is added, changed or deleted by hand."""

    # Whether filters and searches look only at the newest rows.
    windowed: ClassVar[bool] = True
    # Indexed columns by which links from other pages may filter.
    linked_by: ClassVar[tuple[str, ...]] = ()
    # Lines of a row's own page beside its columns.
    extra_lines: ClassVar[tuple[Column, ...]] = ()

    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    list_per_page = 50
    paginator: ClassVar[type[RowPaginator]] = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER

    class Media:
        css = {"all": ["css/admin.css"]}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list under the name of what it lists."""
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title} | (extra_context or {}))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that reads only what it shows."""
        return BoundedChangeList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Tell whether an address may filter so: by a list filter or an indexed column."""
        offered = {spec.parameter_name for spec in self.get_list_filter(request)}  # type: ignore[union-attr]
        return lookup in offered or lookup in self.linked_by

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return a line for every column, and the extra ones."""
        return (*(line(field.name) for field in self.opts.concrete_fields), *self.extra_lines)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return every line."""
        return self.get_fields(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    def has_triage_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may act on these rows through the queue."""
        codename = get_permission_codename("change", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")


def _excerpts(columns: list[Column]) -> list[Excerpt]:
    return [column for column in columns if isinstance(column, Excerpt)]
