"""The parts of the REST API that belong to no app."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse


def health(request: HttpRequest) -> HttpResponse:
    """Say that the office answers, and nothing else."""
    return JsonResponse({"ok": True}, json_dumps_params={"separators": (",", ":")})
