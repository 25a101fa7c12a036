"""Backups of an office on PostgreSQL, made and put back by its own programs."""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings

from tests.backups import BUSY, broken_promises
from tests.offices import ROOT, manage, until
from tinyoffice.backups import Backup, postgresql, shelf
from tinyoffice.backups.errors import BackupFailed

pytestmark = pytest.mark.postgresql_only


@dataclass(frozen=True, kw_only=True)
class Place:
    """A home and a database of its own on the server of the round."""

    home: Path
    name: str

    @property
    def environment(self) -> dict[str, str]:
        server = settings.TINYOFFICE.postgres
        host = server.host.replace("/", "%2F")
        return os.environ | {
            "TINYAGI_HOME": str(self.home),
            "DATABASE_URL": f"postgres://{server.user}@{host}/{self.name}",
        }

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return manage(*arguments, environment=self.environment)

    def backup(self, *arguments: str) -> Backup:
        done = self.manage("backup", *arguments)
        assert done.returncode == 0, done.stderr
        found = shelf.read(Path(done.stdout.split("'")[1]))
        assert found is not None
        return found

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with connect(self.name) as connection:
            found = connection.execute(query)
            return found.fetchall() if found.description else []


def connect(name: str) -> psycopg.Connection:
    server = settings.TINYOFFICE.postgres
    return psycopg.connect(dbname=name, user=server.user, host=server.host, autocommit=True)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Place]:
    place = Place(home=tmp_path / "empty", name=f"empty_{secrets.token_hex(4)}")
    yield from created(place)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    for made in created(Place(home=tmp_path / "home", name=f"office_{secrets.token_hex(4)}")):
        migrated = made.manage("migrate", "--verbosity=0")
        assert migrated.returncode == 0, migrated.stderr
        yield made


def created(place: Place) -> Iterator[Place]:
    with connect("postgres") as server:
        server.execute(f'CREATE DATABASE "{place.name}"')
        yield place
        server.execute(f'DROP DATABASE "{place.name}" WITH (FORCE)')


def test_a_backup_taken_under_load_comes_back_whole(
    place: Place, empty: Place, tmp_path: Path
) -> None:
    acknowledged = tmp_path / "acknowledged"
    with acknowledged.open("w") as out:
        busy = subprocess.Popen(
            [sys.executable, "-c", BUSY],
            cwd=ROOT,
            env=place.environment,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    try:
        before = until(lambda: acknowledged.read_text().split("\n")[:-1], "a first message")
        made = place.backup()
        assert busy.poll() is None
    finally:
        busy.kill()
        busy.wait()
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.file.parent.iterdir()} == {0o600}

    done = empty.manage("restore_backup", str(made.file), "--yes")

    assert done.returncode == 0, done.stderr
    assert made.manifest.made_at in done.stdout
    for table, count in made.manifest.rows.items():
        assert empty.rows(f'SELECT count(*) FROM "{table}"') == [(count,)], table
    for query in broken_promises():
        assert empty.rows(query) == []
    kept = {name for (name,) in empty.rows("SELECT message_id FROM messages")}
    assert set(before) <= kept
    assert empty.manage("migrate", "--check").returncode == 0


def test_a_restore_replaces_what_is_there_and_can_be_taken_back(place: Place) -> None:
    place.rows("INSERT INTO lanes (name) VALUES ('agent:old')")
    place.backup()
    place.rows("INSERT INTO lanes (name) VALUES ('agent:new')")

    done = place.manage("restore_backup", "--yes")

    assert done.returncode == 0, done.stderr
    assert place.rows("SELECT name FROM lanes") == [("agent:old",)]
    (aside,) = (place.home / "backups").glob("before-restore-*.dump")
    assert place.manage("restore_backup", aside.name, "--yes").returncode == 0
    assert place.rows("SELECT name FROM lanes ORDER BY name") == [("agent:new",), ("agent:old",)]


def test_nothing_is_replaced_while_anybody_is_connected(place: Place) -> None:
    place.backup()
    with connect(place.name):
        refused = place.manage("restore_backup", "--yes")

    assert refused.returncode == 1
    assert f"'{place.name}' has 1 other connections" in refused.stderr
    assert list((place.home / "backups").glob("before-restore-*")) == []


def test_a_damaged_dump_is_refused_and_the_database_left_alone(place: Place) -> None:
    made = place.backup()
    place.rows("INSERT INTO lanes (name) VALUES ('agent:new')")
    with made.file.open("r+b") as stream:
        stream.seek(made.manifest.size // 2)
        stream.write(b"\xde\xad\xbe\xef")

    refused = place.manage("restore_backup", "--yes")

    assert refused.returncode == 1
    assert "does not have the SHA-256" in refused.stderr
    assert place.rows("SELECT name FROM lanes") == [("agent:new",)]


def test_only_the_newest_are_kept(place: Place) -> None:
    made = [place.backup("--keep", "2") for _ in range(3)]

    assert shelf.kept(place.home / "backups", shelf.POSTGRESQL) == [made[2], made[1]]


def test_a_database_without_tables_and_one_that_is_not_there_are_told(
    empty: Place, tmp_path: Path
) -> None:
    nothing = empty.manage("backup")
    gone = Place(home=tmp_path / "gone", name="no_such_database").manage("backup")

    assert (nothing.returncode, gone.returncode) == (1, 1)
    assert f"'{empty.name}' holds no TinyOffice tables" in nothing.stderr
    assert "'no_such_database' cannot be used" in gone.stderr
    assert "Traceback" not in nothing.stderr + gone.stderr
    assert [file.name for file in (empty.home / "backups").iterdir()] == [".lock"]


def test_a_program_that_is_not_installed_is_named() -> None:
    with pytest.raises(BackupFailed, match=r"'pg_nowhere', and that was not found.*Install"):
        postgresql.program("pg_nowhere")
