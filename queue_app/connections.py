"""Database connections of threads that live long: one that was cut is replaced at its next use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection

T = TypeVar("T")


def replaced_when_broken(act: Callable[..., T], *arguments: object) -> T:
    """Do it; after an error this thread's next use opens a fresh connection."""
    try:
        return act(*arguments)
    except (DatabaseError, InterfaceError):
        connection.close()
        raise


def tried_twice(act: Callable[..., T], *arguments: object) -> T:
    """Do what only reads; once more on a fresh connection if the old one was cut."""
    try:
        return act(*arguments)
    except (InterfaceError, OperationalError):
        connection.close()
        return act(*arguments)
