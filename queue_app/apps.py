"""The queue's Django app."""

from __future__ import annotations

from django.apps import AppConfig


class QueueAppConfig(AppConfig):
    """Messages, responses, events and their life."""

    name = "queue_app"
    verbose_name = "Queue"
    default_auto_field = "django.db.models.BigAutoField"
