"""The channels' Django app."""

from __future__ import annotations

from django.apps import AppConfig


class ChannelsAppConfig(AppConfig):
    """How people reach the office."""

    name = "channels_app"
    verbose_name = "Channels"
    default_auto_field = "django.db.models.BigAutoField"
