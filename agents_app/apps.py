"""The agents' Django app."""

from __future__ import annotations

from django.apps import AppConfig


class AgentsAppConfig(AppConfig):
    """Who answers, and how."""

    name = "agents_app"
    verbose_name = "Agents"
    default_auto_field = "django.db.models.BigAutoField"
