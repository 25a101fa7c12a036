"""The same work on PostgreSQL: a server of its own, and a process that knows no other database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from queue_app import holders
from tests.benchmarks import past, tape, waking
from tests.benchmarks.figures import Book, Series
from tests.benchmarks.logs import keep_aside
from tests.benchmarks.work import BLOCKS, Desk
from tests.databases import PostgresServer

ROWS = 1_000


def measure(rounds: int, sizes: tuple[int, ...], messages: int) -> dict[str, Any] | None:
    """Return what was measured on a real server; None where its programs are not installed."""
    with _server() as url:
        if url is None:
            return None
        asked = json.dumps({"rounds": rounds, "sizes": sizes, "messages": messages})
        home = tempfile.mkdtemp(prefix="home-", dir=settings.TINYOFFICE.home)
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks", "postgres", asked],
            env={**os.environ, "DATABASE_URL": url, "TINYAGI_HOME": home},
            cwd=settings.BASE_DIR,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    answer: dict[str, Any] = json.loads(done.stdout)
    answer["series"] = {name: Series(*lists) for name, lists in answer["series"].items()}
    return answer


def main(arguments: list[str]) -> None:
    """Measure on the database of the environment; print what was measured as JSON."""
    asked = json.loads(arguments[0])
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        for _ in past.fill(cursor.execute, ROWS):
            pass
        cursor.execute("SHOW server_version")
        (version,) = cursor.fetchone()
    with keep_aside():
        book = _play(asked["rounds"], asked["sizes"])
        latencies = waking.latencies(asked["messages"])
    series = {name: (its.rates, its.steps) for name, its in book.series.items()}
    json.dump({"version": version, "series": series, "latencies": latencies.seen}, sys.stdout)


def _play(rounds: int, sizes: list[int]) -> Book:
    book = Book()
    desk = Desk(holder=holders.become("bench", settings.TINYOFFICE.home))
    for number in range(rounds + 1):
        for block, size in zip(BLOCKS, sizes, strict=True):
            timings = tape.play(block(desk, size))
            if number:
                book.add(timings)
    return book


@contextmanager
def _server() -> Iterator[str | None]:
    # The server may run as another user, who cannot get into a private home.
    with tempfile.TemporaryDirectory(prefix="toff-") as directory:
        try:
            server = PostgresServer(Path(directory) / "postgres")
        except (pytest.exit.Exception, pytest.UsageError):
            yield None
            return
        try:
            url = server.start()
            with psycopg.connect(url, dbname="postgres", autocommit=True) as database:
                database.execute("CREATE DATABASE tinyoffice")
            yield url
        finally:
            server.stop()
