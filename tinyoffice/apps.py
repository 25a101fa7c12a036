"""The project as a Django app: settings, credentials, system checks."""

from __future__ import annotations

from django.apps import AppConfig


class TinyOfficeConfig(AppConfig):
    """What holds the parts together."""

    name = "tinyoffice"
    verbose_name = "Office"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from tinyoffice import checks

        checks.register()
