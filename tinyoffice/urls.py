"""What is reachable where. Only health, the login pages and static files open without credentials."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tinyoffice import api

urlpatterns = [
    path("api/health", api.health),
    path("admin/", admin.site.urls),
]
