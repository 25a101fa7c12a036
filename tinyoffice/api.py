"""The parts of the REST API that belong to no app."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from tinyoffice import credentials


@csrf_exempt
def health(request: HttpRequest) -> HttpResponse:
    """Say that the office answers, and nothing else."""
    if request.method not in ("GET", "HEAD"):
        return unknown(request)
    return JsonResponse({"ok": True}, json_dumps_params={"separators": (",", ":")})


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer for every path the API does not have: strangers learn not even that."""
    if not _is_known(request):
        answer = _error(
            HTTPStatus.UNAUTHORIZED,
            "unauthorized",
            "This needs a token: send `Authorization: Bearer TOKEN` with the one in the file `token` "
            "in the office's home, or log in with the link of `manage.py login_link`.",
        )
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    return _error(
        HTTPStatus.NOT_FOUND,
        "unknown_path",
        f"There is nothing at '{request.path}'. Look for the path in the documentation of the API.",
    )


def _is_known(request: HttpRequest) -> bool:
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return credentials.verify(text.strip()) is not None
    return request.user.is_authenticated


def _error(status: HTTPStatus, code: str, sentence: str) -> JsonResponse:
    return JsonResponse({"error": sentence, "code": code}, status=status)
