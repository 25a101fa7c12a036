"""Constraints that several tables share."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


def one_of(choices: type[models.TextChoices], table: str, field: str) -> models.CheckConstraint:
    """Return the constraint that a column holds one of the choices."""
    return models.CheckConstraint(
        name=f"{table}_{field}_known", condition=Q(**{f"{field}__in": choices.values})
    )
