"""Backups of a SQLite office: real homes, real processes, real signals."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from queue_app import holders
from tests.backups import BUSY, broken_promises
from tests.offices import MANAGE, ROOT, manage, until
from tinyoffice.backups import Backup, latest_verified, shelf

pytestmark = pytest.mark.sqlite_only

# Makes a backup that is killed, as by a power cut, when it reports a step.
KILLED = """
import os, signal, sys
from tests.workers import settings
from tinyoffice import backups
from tinyoffice.backups import shelf
def report(step, done, total):
    if step == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
backups.make(settings.TINYOFFICE, shelf.directory_of(settings.TINYOFFICE.home), keep=7, report=report)
"""

HOLDING = """
from tests.workers import queue, become_holder, say, submission, wait_for_go
holder = become_holder()
queue.enqueue(submission("held", ["coder"], "held_1"))
queue.enqueue(submission("waiting", ["writer"], "waiting_1"))
assert queue.claim(queue.lane_of("coder"), holder)
say("holding")
wait_for_go()
"""

WATCHING = """
from tests.workers import say, settings
from queue_app.models import Message
from queue_app.watch import Watcher
given_back = Watcher(settings.TINYOFFICE.home, settings.TINYOFFICE.queue).look()
say(given_back, *Message.objects.order_by("id").values_list("status", "retry_count"))
"""


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with tables and nothing else; tests take copies of it."""
    home = tmp_path_factory.mktemp("founded") / "home"
    migrated = manage("migrate", "--verbosity=0", TINYAGI_HOME=str(home))
    assert migrated.returncode == 0, migrated.stderr
    return home


@pytest.fixture
def home(founded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(founded, tmp_path / "home"))


def backup(home: Path, *arguments: str) -> Backup:
    done = manage("backup", *arguments, TINYAGI_HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert "Backed up and verified" in done.stdout
    found = shelf.read(Path(done.stdout.split("'")[1]))
    assert found is not None
    return found


def restore(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return manage("restore_backup", *arguments, TINYAGI_HOME=str(home))


@contextmanager
def child(home: Path, script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env=os.environ | {"TINYAGI_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def add_lanes(home: Path, *names: str) -> None:
    with closing(sqlite3.connect(home / "tinyagi.db")) as database, database:
        database.executemany("INSERT INTO lanes (name) VALUES (?)", [(name,) for name in names])


def lanes(file: Path) -> set[object]:
    return {name for (name,) in rows(file, "SELECT name FROM lanes")}


def fatten(home: Path, megabytes: int) -> None:
    """Give the database rows of some size, so that copying it takes more than one step."""
    with closing(sqlite3.connect(home / "tinyagi.db")) as database, database:
        database.executemany(
            "INSERT INTO chat_messages (team_id, from_agent, message, created_at) VALUES (?, ?, ?, 1)",
            (("t", "a", f"{number}" + "x" * 500) for number in range(megabytes * 2_000)),
        )


def visible(home: Path) -> list[str]:
    return sorted(file.name for file in (home / "backups").iterdir() if file.name != ".lock")


def test_a_backup_is_private_and_tells_what_it_holds(home: Path) -> None:
    add_lanes(home, "agent:coder", "agent:writer")

    made = backup(home)

    assert made.file.parent == home / "backups"
    assert {stat.S_IMODE(f.stat().st_mode) for f in (home / "backups").iterdir()} == {0o600}
    assert made.manifest.size == made.file.stat().st_size
    assert made.manifest.sha256 == shelf.digest(made.file)
    assert made.manifest.rows["lanes"] == 2
    assert made.manifest.database == f"SQLite {sqlite3.sqlite_version}"
    assert "queue_app.0001_initial" in made.manifest.migrations
    assert made.manifest.version[0].isdigit()
    assert latest_verified(home) == made


def test_backups_taken_under_load_hold_every_promise(home: Path, tmp_path: Path) -> None:
    acknowledged = tmp_path / "acknowledged"
    with acknowledged.open("w") as out:
        busy = subprocess.Popen(
            [sys.executable, "-c", BUSY],
            cwd=ROOT,
            env=os.environ | {"TINYAGI_HOME": str(home)},
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    try:
        taken = []
        for _ in range(4):
            before = until(lambda: acknowledged.read_text().split("\n")[:-1], "a first message")
            taken.append((before, backup(home)))
            assert busy.poll() is None
    finally:
        busy.kill()
        busy.wait()

    for before, made in taken:
        kept = {name for (name,) in rows(made.file, "SELECT message_id FROM messages")}
        assert set(before) <= kept
        for query in broken_promises():
            assert rows(made.file, query) == []
    sizes = [made.manifest.rows["messages"] for _, made in taken]
    assert sizes == sorted(set(sizes)), "the office stood still while it was backed up"


def test_only_the_newest_are_kept_and_other_offices_left_alone(home: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    other = Path(shutil.copytree(home, tmp_path / "other"))
    for one in (home, other):
        (one / "host").unlink(missing_ok=True)
    foreign = backup(other, "--to", str(shared))

    made = [backup(home, "--to", str(shared), "--keep", "2") for _ in range(4)]

    left = shelf.kept(shared, shelf.SQLITE)
    assert left == [made[3], made[2], foreign]
    assert len(list(shared.iterdir())) == 6
    assert latest_verified(home) is None


def test_a_copy_that_lost_bytes_neither_counts_nor_pushes_out_a_whole_one(home: Path) -> None:
    whole = backup(home)
    cut = backup(home)
    os.truncate(cut.file, cut.manifest.size // 2)

    assert latest_verified(home) == whole
    newest = backup(home, "--keep", "2")

    assert shelf.kept(home / "backups", shelf.SQLITE) == [newest, whole]


@pytest.mark.parametrize("asked", ["0", "-1", "x", "1.5", "٣"])
def test_a_number_to_keep_below_one_is_refused(home: Path, asked: str) -> None:
    refused = manage("backup", f"--keep={asked}", TINYAGI_HOME=str(home))

    assert refused.returncode != 0
    assert "is not a whole number from 1 up" in refused.stderr
    assert visible(home) == []


@pytest.mark.parametrize("step", ["copying", "checking", "keeping"])
def test_a_backup_killed_at_any_step_counts_for_nothing(home: Path, step: str) -> None:
    fatten(home, megabytes=8)
    with child(home, KILLED, step) as process:
        assert process.wait(60) == -signal.SIGKILL

    assert latest_verified(home) is None
    assert restore(home, "--yes").returncode != 0
    assert [name for name in visible(home) if not name.startswith(".draft-")] == []

    made = backup(home)
    assert visible(home) == [made.file.name, made.file.with_suffix(".json").name]


def test_a_backup_that_is_asked_to_stop_leaves_nothing(home: Path) -> None:
    fatten(home, megabytes=64)
    process = subprocess.Popen(
        [*MANAGE, "backup"],
        env=os.environ | {"TINYAGI_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    drafts = home / "backups"
    until(lambda: [f for f in drafts.glob(".draft-*") if f.stat().st_size], "a draft that grows")
    process.terminate()
    _, said = process.communicate(timeout=60)

    assert process.returncode in (1, 128 + signal.SIGTERM)
    assert process.returncode != 1 or "It was stopped by a signal" in said
    assert visible(home) == []


def test_a_disk_that_has_no_room_is_told_and_left_clean(home: Path) -> None:
    fatten(home, megabytes=4)
    earlier = backup(home)

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    failed = subprocess.run(
        [*MANAGE, "backup"],
        env=os.environ | {"TINYAGI_HOME": str(home)},
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        timeout=60,
        check=False,
    )

    assert failed.returncode == 1
    assert f"'{home / 'tinyagi.db'}' was to be copied to '{home / 'backups'}'" in failed.stderr
    assert "make room, or choose another directory with --to" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert visible(home) == [earlier.file.name, earlier.file.with_suffix(".json").name]


def test_a_place_that_cannot_be_written_is_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    failed = manage("backup", "--to", str(tmp_path / "file"), TINYAGI_HOME=str(home))

    assert failed.returncode == 1
    assert f"No backup could be made in '{tmp_path / 'file'}'" in failed.stderr
    assert "choose another with --to" in failed.stderr


def test_a_damaged_database_is_not_backed_up(home: Path) -> None:
    fatten(home, megabytes=1)
    damage(home / "tinyagi.db")

    failed = manage("backup", TINYAGI_HOME=str(home))

    assert failed.returncode == 1
    assert "damaged" in failed.stderr
    assert "manage.py restore_backup" in failed.stderr
    assert visible(home) == []


def test_two_backups_at_once_do_not_meet(home: Path) -> None:
    with shelf.alone(home):
        failed = manage("backup", TINYAGI_HOME=str(home))

    assert failed.returncode == 1
    assert "is at work already" in failed.stderr
    backup(home)


def damage(file: Path) -> None:
    """Write over pages in the middle of a closed file, as a failing disk does."""
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2 // 4096 * 4096)
        stream.write(b"\xde\xad" * 8192)


def test_what_was_backed_up_comes_back_in_another_home(home: Path, tmp_path: Path) -> None:
    add_lanes(home, "agent:coder")
    made = backup(home)
    other = tmp_path / "other"

    done = restore(other, str(made.file), "--yes")

    assert done.returncode == 0, done.stderr
    assert made.manifest.made_at in done.stdout
    assert lanes(other / "tinyagi.db") == {"agent:coder"}
    assert stat.S_IMODE((other / "tinyagi.db").stat().st_mode) == 0o600
    assert list(other.glob(".restore*")) == []
    checked = manage("migrate", "--check", TINYAGI_HOME=str(other))
    assert checked.returncode == 0, checked.stderr


def test_a_restore_can_be_taken_back(home: Path) -> None:
    add_lanes(home, "agent:old")
    backup(home)
    add_lanes(home, "agent:new")

    assert restore(home, "--yes").returncode == 0
    assert lanes(home / "tinyagi.db") == {"agent:old"}

    (aside,) = (home / "backups").glob("before-restore-*.db")
    assert restore(home, aside.name, "--yes").returncode == 0
    assert lanes(home / "tinyagi.db") == {"agent:old", "agent:new"}


def test_a_log_beside_the_old_file_does_not_flow_into_the_restored_one(home: Path) -> None:
    with child(home, HOLDING) as process:
        assert process.stdout
        assert process.stdout.readline() == "holding\n"
        made = backup(home)
        process.kill()
        process.wait()
    assert (home / "tinyagi.db-wal").stat().st_size > 0

    assert restore(home, "--yes").returncode == 0

    assert not (home / "tinyagi.db-wal").exists()
    assert rows(home / "tinyagi.db", "PRAGMA integrity_check") == [("ok",)]
    assert made.manifest.rows["messages"] == 2


def test_work_that_was_going_on_in_a_backup_is_taken_up_after_a_restore(home: Path) -> None:
    with child(home, HOLDING) as process:
        assert process.stdout
        assert process.stdout.readline() == "holding\n"
        backup(home)
        process.kill()
        process.wait()

    assert restore(home, "--yes").returncode == 0

    with child(home, WATCHING) as process:
        said, _ = process.communicate(timeout=60)
        assert said == "1 ('pending', 1) ('pending', 0)\n"


def test_a_damaged_backup_is_refused_and_the_database_left_alone(home: Path) -> None:
    fatten(home, megabytes=1)
    made = backup(home)
    add_lanes(home, "agent:new")
    damage(made.file)

    refused = restore(home, "--yes")

    assert refused.returncode == 1
    assert f"'{made.file}' is damaged: it does not have the SHA-256" in refused.stderr
    assert "The database was left as it is" in refused.stderr
    assert "agent:new" in lanes(home / "tinyagi.db")
    assert list(home.glob(".restore*")) == []


def test_a_damaged_backup_with_a_fitting_manifest_is_refused_too(home: Path) -> None:
    fatten(home, megabytes=1)
    made = backup(home)
    damage(made.file)
    change_manifest(made, sha256=shelf.digest(made.file))

    refused = restore(home, "--yes")

    assert refused.returncode == 1
    assert "Choose another backup" in refused.stderr


def change_manifest(made: Backup, **values: object) -> None:
    note = made.file.with_suffix(".json")
    note.write_text(json.dumps(json.loads(note.read_text()) | values))


def test_a_backup_of_a_newer_version_is_refused(home: Path) -> None:
    made = backup(home)
    newer = [*made.manifest.migrations, "queue_app.9999_from_the_future"]
    change_manifest(made, migrations=newer, version="99.0")

    refused = restore(home, "--yes")

    assert refused.returncode == 1
    assert "made by version 99.0" in refused.stderr
    assert "'queue_app.9999_from_the_future'" in refused.stderr


def test_a_damaged_database_is_kept_as_it_is_and_replaced(home: Path) -> None:
    fatten(home, megabytes=1)
    add_lanes(home, "agent:coder")
    backup(home)
    damage(home / "tinyagi.db")
    found = (home / "tinyagi.db").read_bytes()

    done = restore(home, "--yes")

    assert done.returncode == 0, done.stderr
    assert lanes(home / "tinyagi.db") == {"agent:coder"}
    (aside,) = (home / "backups").glob("before-restore-*.db")
    assert aside.read_bytes()[4096:] == found[4096:]


def test_a_living_holder_keeps_the_database_from_being_replaced(home: Path) -> None:
    backup(home)
    with child(home, HOLDING) as process:
        assert process.stdout
        assert process.stdout.readline() == "holding\n"

        refused = restore(home, "--yes")

        assert refused.returncode == 1
        assert f"still works on '{home}' (processor-{process.pid}-" in refused.stderr
    assert rows(home / "tinyagi.db", "SELECT count(*) FROM messages") == [(2,)]


def test_a_program_that_has_the_database_open_keeps_it_from_being_replaced(home: Path) -> None:
    add_lanes(home, "agent:coder")
    backup(home)
    reading = """
from tests.workers import connection, say, wait_for_go
connection.cursor().execute("SELECT count(*) FROM lanes")
say("open")
wait_for_go()
"""
    with child(home, reading) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"

        refused = restore(home, "--yes")

    assert refused.returncode == 1
    assert "Another program has it open" in refused.stderr
    assert visible(home) == [name for name in visible(home) if name.startswith("tinyagi-")]


def test_nothing_is_replaced_unasked(home: Path) -> None:
    backup(home)
    add_lanes(home, "agent:new")

    refused = restore(home)

    assert refused.returncode == 1
    assert "Add --yes" in refused.stderr
    assert lanes(home / "tinyagi.db") == {"agent:new"}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("latest", "There is no verified backup in"),
        ("gone.db", "must be together"),
        ("tinyagi.dump", "whose backups end in '.db'"),
    ],
)
def test_a_backup_that_is_not_there_is_told(home: Path, asked: str, sentence: str) -> None:
    refused = restore(home, asked, "--yes")

    assert refused.returncode == 1
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_live_file_is_never_taken_for_a_backup(home: Path) -> None:
    refused = restore(home, str(home / "tinyagi.db"), "--yes")

    assert refused.returncode == 1
    assert "manifest 'tinyagi.json'" in refused.stderr


def test_an_office_that_runs_is_named(home: Path) -> None:
    backup(home)
    running = """
from tests.workers import say, settings, wait_for_go
from tinyoffice import presence
lock = presence.take(settings.TINYOFFICE.home)
say("open")
wait_for_go()
"""
    with child(home, running) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"

        refused = restore(home, "--yes")

        assert f"An office runs on '{home}' (process {process.pid})" in refused.stderr
        assert "manage.py stop" in refused.stderr
    assert refused.returncode == 1
    assert holders.sweep(home) == 0
    assert restore(home, "--yes").returncode == 0


def test_a_database_whose_very_header_is_destroyed_is_restored(home: Path) -> None:
    backup(home)
    (home / "tinyagi.db").write_bytes(b"garbage! " * 200)

    refused = manage("status", TINYAGI_HOME=str(home))
    restored = restore(home, "latest", "--yes")
    after = manage("status", TINYAGI_HOME=str(home))

    assert "file is not a database" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert restored.returncode == 0, restored.stderr
    assert "0 pending" in after.stdout
