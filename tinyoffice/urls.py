"""What is reachable where. Only health, the login pages and static files open without credentials."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path, re_path
from django.views.generic import RedirectView

from tinyoffice import api, login

urlpatterns = [
    path("", RedirectView.as_view(url=login.DESTINATION)),
    path("login/<str:token>", login.open_link),
    path("admin/", admin.site.urls),
    path("api/health", api.health),
    re_path(r"^api(?:/.*)?$", api.unknown),
]
