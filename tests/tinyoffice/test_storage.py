"""Home and database: refused in a sentence when they cannot be used, and left as they were."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.offices import MANAGE, ROOT, free_port, manage
from tinyoffice import storage
from tinyoffice.errors import TinyOfficeError

NOBODY = 65_534


def snapshot(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    } | {str(path.relative_to(directory)): "" for path in directory.rglob("*") if path.is_dir()}


def make_database(file: Path, journal: str = "wal", rows: int = 3) -> None:
    database = sqlite3.connect(file)
    database.execute(f"PRAGMA journal_mode={journal}")
    database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, message TEXT)")
    database.executemany("INSERT INTO messages (message) VALUES (?)", [("hello " * 50,)] * rows)
    database.commit()
    database.close()


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user of the machine can get to."""
    directory = Path(tempfile.mkdtemp(prefix="toff-public-"))
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


def said_unprivileged(act: Callable[[], object]) -> str:
    """Return the sentence an act ends with when the user may not write everywhere."""
    out, inward = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            act()
        except TinyOfficeError as error:
            said = str(error)
        finally:
            os.write(inward, said.encode())
            os._exit(0)
    os.close(inward)
    with os.fdopen(out) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("command", ["office", "status", "migrate", "login_link"])
def test_another_products_database_is_refused_and_left_byte_for_byte(
    tmp_path: Path, journal: str, command: str
):
    make_database(tmp_path / "tinyagi.db", journal)
    before = snapshot(tmp_path)

    refused = manage(command, TINYAGI_HOME=str(tmp_path), TINYAGI_API_PORT=str(free_port()))

    assert refused.returncode == 1
    assert "holds tables of another product (messages)" in refused.stderr
    assert "Nothing was changed" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert snapshot(tmp_path) == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "tinyagi.db").write_bytes(b"this is a letter, not a database. " * 200)
    before = snapshot(tmp_path)

    refused = manage("office", TINYAGI_HOME=str(tmp_path), TINYAGI_API_PORT=str(free_port()))

    assert refused.returncode == 1
    assert "file is not a database" in refused.stderr
    assert "restore_backup" in refused.stderr
    assert snapshot(tmp_path)["tinyagi.db"] == before["tinyagi.db"]


def test_flipped_bytes_are_found_before_anything_is_written(tmp_path: Path):
    file = tmp_path / "tinyagi.db"
    make_database(file, "delete", rows=500)
    storage.check_database(file)
    with file.open("r+b") as handle:
        handle.seek(4096 * 2)
        handle.write(b"\xff" * 4096)

    with pytest.raises(storage.StorageUnusable, match=r"cannot be used: .*restore_backup"):
        storage.check_database(file)


def test_a_database_that_another_program_holds_is_refused(tmp_path: Path):
    file = tmp_path / "tinyagi.db"
    make_database(file)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    try:
        with pytest.raises(storage.StorageUnusable, match=r"database is locked.*end that program"):
            storage.check_database(file)
    finally:
        holder.close()


def test_a_read_only_database_is_refused(public: Path):
    file = public / "tinyagi.db"
    make_database(file, "delete")
    file.chmod(0o444)
    public.chmod(0o555)

    said = said_unprivileged(lambda: storage.check_database(file))

    assert "attempt to write a readonly database" in said
    assert "if it is read-only" in said


def test_a_home_that_cannot_be_written_is_refused(public: Path):
    public.chmod(0o555)

    said = said_unprivileged(lambda: storage.prepare_home(public / "home"))
    kept = said_unprivileged(lambda: storage.secret(public / "secret_key"))

    assert said.startswith(f"'{public / 'home'}' cannot be used: Permission denied.")
    assert "set TINYAGI_HOME" in said
    assert "cannot be used: Permission denied" in kept
    assert list(public.iterdir()) == []


def test_a_home_that_is_a_file_is_refused(tmp_path: Path):
    (tmp_path / "home").write_text("")

    refused = manage("status", TINYAGI_HOME=str(tmp_path / "home"))

    assert refused.returncode == 1
    assert "cannot be used" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_disk_that_is_full_stops_the_start_with_a_sentence_and_is_taken_up_later(tmp_path: Path):
    environment = os.environ | {
        "TINYAGI_HOME": str(tmp_path / "home"),
        "TINYAGI_API_PORT": str(free_port()),
    }

    # A limit on the size of files stands in for the end of the disk: writes fail in the same place.
    refused = subprocess.run(
        [*MANAGE, "office"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )

    assert refused.returncode == 1
    assert "could not be prepared" in refused.stderr
    assert "full disk" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert manage("migrate", environment=environment).returncode == 0
    assert manage("login_link", environment=environment).returncode == 0


def test_a_secret_is_made_once_for_everybody(tmp_path: Path):
    program = (
        "import sys; from pathlib import Path; from tinyoffice import storage;"
        "sys.stdin.read(); print(storage.secret(Path(sys.argv[1])))"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "secret")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]

    answers = {child.communicate("", timeout=60)[0] for child in children}

    assert len(answers) == 1
    assert answers == {(tmp_path / "secret").read_text()}
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_home_and_its_directories_are_private(tmp_path: Path):
    storage.prepare_home(tmp_path / "a" / "home")

    made = [tmp_path / "a" / "home", *(tmp_path / "a" / "home").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}
    assert {path.name for path in made[1:]} == set(storage.DIRECTORIES)
