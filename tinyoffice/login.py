"""The owner's way in: a link shown on the terminal opens a page, and its button logs in, once."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from tinyoffice import credentials, founding

DESTINATION = "/admin/"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show the page of a link; spend it only on POST, for previews and scanners open links too."""
    if request.method == "POST" and credentials.spend_login(token):
        login(request, founding.ensure_owner(), "django.contrib.auth.backends.ModelBackend")
        return redirect(DESTINATION)
    if request.method != "POST" and credentials.opens(token):
        return render(request, "login.html", {"good": True})
    if request.user.is_authenticated:
        return redirect(DESTINATION)  # a second press of the button, or the same link once more
    return render(request, "login.html", {"good": False}, status=HTTPStatus.GONE)
