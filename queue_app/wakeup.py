"""Tell other processes to look now: a unix datagram on SQLite, NOTIFY on PostgreSQL.

A wake-up carries no data; losing one costs a poll, never a message.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import select
import socket
from functools import cache
from pathlib import Path
from typing import Protocol

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection

from tinyoffice.runtime import runtime_directory

logger = logging.getLogger(__name__)

CHANNEL = "tinyoffice_queue"


def ring() -> None:
    """Wake every process that waits; call it after the commit, which no failure here undoes."""
    try:
        _ring()
    except (DatabaseError, OSError) as error:
        logger.warning("nobody was woken error=%s", error)


def _ring() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
        return
    directory = _directory()
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        _directory.cache_clear()  # somebody tidied it away, and every bell with it
        return
    for name in names:
        if name.endswith(".bell"):
            _knock(f"{directory}/{name}")


def _knock(bell: str) -> None:
    try:
        _sender().sendto(b"", bell)
    except BlockingIOError:
        return  # its queue is full of wake-ups: it will look anyway
    except (ConnectionRefusedError, FileNotFoundError):
        Path(bell).unlink(missing_ok=True)  # its process ended without taking it down


class Bell(Protocol):
    """Something that can be waited for, alone or in an event loop."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return whether somebody rang. All waiting rings count as one.

        Raise DatabaseError when the bell is broken: its server is gone.
        """

    def close(self) -> None:
        """Take the bell down."""


def hang_up() -> Bell:
    """Return a new bell for this process, of the kind its database needs."""
    return _NotifyBell() if connection.vendor == "postgresql" else _DatagramBell()


class _DatagramBell:
    def __init__(self) -> None:
        self.path = _directory() / f"{os.getpid()}-{secrets.token_hex(2)}.bell"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.setblocking(False)

    def fileno(self) -> int:
        return self.socket.fileno()

    def wait(self, seconds: float) -> bool:
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        try:
            while True:
                self.socket.recv(1)
        except BlockingIOError:
            return True

    def close(self) -> None:
        self.socket.close()
        self.path.unlink(missing_ok=True)


class _NotifyBell:
    def __init__(self) -> None:
        parameters = connection.get_connection_params()
        given = ("dbname", "user", "password", "host", "port")
        with connection.wrap_database_errors:
            self.connection = psycopg.connect(
                autocommit=True, **{key: parameters[key] for key in given if key in parameters}
            )
            self.connection.execute(f"LISTEN {CHANNEL}")

    def fileno(self) -> int:
        return self.connection.fileno()

    def wait(self, seconds: float) -> bool:
        if not select.select([self.connection], [], [], seconds)[0]:
            return False
        with connection.wrap_database_errors:
            return any(True for _ in self.connection.notifies(timeout=0))

    def close(self) -> None:
        self.connection.close()


@cache
def _sender() -> socket.socket:
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    atexit.register(sender.close)
    return sender


@cache
def _directory() -> Path:
    return runtime_directory(settings.TINYOFFICE.home)
