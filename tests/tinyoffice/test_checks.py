"""System checks: a wrong deployment is told with a hint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.db import connection

from tests.offices import ROOT
from tinyoffice import sqlite_library

CHECK = """
import os, sys
{first}
import tinyoffice
os.environ["DJANGO_SETTINGS_MODULE"] = "tinyoffice.settings"
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "check", "--database", "default"])
"""


def check(home: Path, first: str = "") -> subprocess.CompletedProcess[str]:
    """Run Django's checks in a process that begins with some lines."""
    return subprocess.run(
        [sys.executable, "-c", CHECK.format(first=first)],
        cwd=ROOT,
        env=os.environ | {"TINYAGI_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def stdlib_is_old() -> bool:
    found = subprocess.run(
        [sys.executable, "-c", "import sqlite3; print(sqlite3.sqlite_version)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(map(int, found.split("."))) < sqlite_library.SAFE_WAL


old_stdlib = pytest.mark.skipif(
    not stdlib_is_old(), reason="this Python's own SQLite is new enough"
)


@pytest.mark.django_db
def test_the_project_as_it_is_has_nothing_to_complain_about():
    assert run_checks(databases=["default"]) == []


def test_a_fresh_process_passes_too(tmp_path: Path):
    done = check(tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


@old_stdlib
@pytest.mark.skipif(not sqlite_library.wal_is_safe(), reason="there is only one SQLite here")
def test_two_sqlite_libraries_in_one_process_are_an_error(tmp_path: Path):
    done = check(tmp_path, "import django.db.backends.sqlite3.base")

    assert done.returncode == 1
    assert "(tinyoffice.E001) This process has two SQLite libraries" in done.stderr
    assert "HINT: Import `tinyoffice` before anything that imports sqlite3." in done.stderr


@old_stdlib
def test_an_unsafe_sqlite_is_told_and_the_rollback_journal_is_used(tmp_path: Path):
    done = check(tmp_path, "sys.modules['pysqlite3'] = None")

    assert done.returncode == 0
    assert "(tinyoffice.W001)" in done.stderr
    assert "DATABASE_URL" in done.stderr
    assert not (tmp_path / "tinyagi.db-wal").exists()


@pytest.mark.django_db
@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("option", "value"),
    [("transaction_mode", "DEFERRED"), ("init_command", "PRAGMA synchronous=NORMAL;")],
)
def test_a_database_that_could_lose_what_it_acknowledged_is_an_error(
    monkeypatch: pytest.MonkeyPatch, option: str, value: str
):
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], option, value)

    (error,) = run_checks(databases=["default"])

    assert error.id == "tinyoffice.E002"
    assert error.hint == "Leave DATABASES as tinyoffice/settings.py makes it."
