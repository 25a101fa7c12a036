"""The queue's Django app."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class QueueAppConfig(AppConfig):
    """Messages, responses, events and their life."""

    name = "queue_app"
    verbose_name = "Queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the clock's entry made with the tables."""
        post_migrate.connect(_schedule_maintenance, sender=self)


def _schedule_maintenance(**kwargs: Any) -> None:
    from django_q.models import Schedule

    # Without `next_run`: a restart must not shift what is due.
    Schedule.objects.update_or_create(
        name="maintenance",
        defaults={
            "func": "queue_app.maintenance.sweep",
            "schedule_type": Schedule.MINUTES,
            "minutes": 1,
            "repeats": -1,
        },
    )
