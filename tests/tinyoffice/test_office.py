"""The office as a whole: real processes, real signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offices import Office, free_port, manage, started, until
from tinyoffice.office import is_private

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office for the tests that leave it open."""
    with started(Office(tmp_path_factory.mktemp("office") / "home with % and space")) as office:
        office.open()
        yield office
        assert office.end() == 0
        assert office.processes() == []


def supervised(office: Office) -> dict[str, dict[str, object]]:
    return {
        row["name"]: row for row in json.loads(office.manage("status", "--json").stdout)["kept"]
    }


def is_up(office: Office) -> bool:
    return all(supervised(office)[name]["state"] == "running" for name in LASTING)


LASTING = ("web", "processor", "scheduler")


def test_it_makes_its_secrets_readable_by_the_owner_alone(running: Office):
    modes = {name: stat.S_IMODE((running.home / name).stat().st_mode) for name in SECRETS}

    assert modes == dict.fromkeys(SECRETS, 0o600)
    assert stat.S_IMODE(running.home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (running.home / "logs").iterdir()} == {
        0o600
    }


SECRETS = ("secret_key", "token", "tinyagi.db")


def test_the_token_in_the_file_is_the_owners(running: Office):
    text = (running.home / "token").read_text()

    assert re.fullmatch(r"toff_\w{8}_\w+\n", text)
    assert running.get("/api/x")[0] == 401
    assert running.get("/api/x", Authorization="Bearer toff_12345678_" + "0" * 48)[0] == 401
    assert running.get("/api/x", Authorization=f"Bearer {text.strip()}")[0] == 404


def test_the_login_link_is_on_the_terminal_and_in_no_log(running: Office):
    token = running.read_until(r"/login/(\S+)\n").group(1)
    assert running.get(f"/login/{token}")[0] == 200
    assert running.get(f"/login/{token}?x=1", Host="evil.example")[0] == 400

    for file in (running.home / "logs").iterdir():
        assert token not in file.read_text()
        assert token.rpartition("_")[2] not in file.read_text()


def test_status_tells_of_every_process(running: Office):
    until(lambda: is_up(running), "all processes to be up")

    shown = running.manage("status")

    assert shown.returncode == 0, shown.stderr
    for name in LASTING:
        assert re.search(rf"^Process +{name} +running .*last seen \d s ago$", shown.stdout, re.M)
    assert "0 pending, 0 processing, 0 completed, 0 dead" in shown.stdout
    assert re.search(r"^Database +SQLite 3\.\d+\.\d+ \(\w+\)$", shown.stdout, re.M)
    assert re.search(r"^Spark +(installed|being fetched|missing|failed)", shown.stdout, re.M)


@pytest.mark.parametrize("name", LASTING)
def test_a_killed_process_comes_back(running: Office, name: str):
    until(lambda: is_up(running), "all processes to be up")
    before = int(str(supervised(running)[name]["pid"]))

    os.kill(before, signal.SIGKILL)

    until(lambda: supervised(running)[name]["pid"] not in (0, before), f"{name} to come back")
    until(running.healthy, "an answer")
    until(lambda: is_up(running), "all processes to be up")


def test_restart_starts_one_process_anew(running: Office):
    until(lambda: is_up(running), "all processes to be up")
    before = supervised(running)

    done = running.manage("restart", "web")

    assert (done.returncode, done.stdout) == (0, "Restarted: web.\n")
    after = supervised(running)
    assert after["web"]["pid"] != before["web"]["pid"]
    assert after["processor"]["pid"] == before["processor"]["pid"]
    until(running.healthy, "an answer")


def test_logs_shows_one_log_or_all(running: Office):
    one = running.manage("logs", "queue", "--lines", "1")
    every = running.manage("logs", "--lines", "2")

    assert one.returncode == 0
    assert len(one.stdout.splitlines()) == 1
    assert {line.partition(":")[0] for line in every.stdout.splitlines()} >= {
        "queue",
        "scheduler",
        "supervisor",
    }
    assert running.manage("logs", "--lines", "-1").returncode != 0


def test_a_second_office_on_the_same_home_is_refused(running: Office):
    refused = running.manage("office")

    assert refused.returncode == 1
    assert f"An office runs on '{running.home}' already (process {running.process.pid})" in (
        refused.stderr
    )
    assert "manage.py stop" in refused.stderr
    assert running.healthy()


def test_a_busy_port_is_refused_with_the_program_that_has_it(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        refused = manage("office", TINYAGI_HOME=str(tmp_path / "home"), TINYAGI_API_PORT=str(port))

    assert refused.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use by '" in refused.stderr
    assert f"(process {os.getpid()})" in refused.stderr
    assert "TINYAGI_API_PORT=" in refused.stderr
    assert not (tmp_path / "home" / "tinyagi.db").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_in_order(tmp_path: Path, number: signal.Signals):
    with started(Office(tmp_path / "home")) as office:
        office.open()
        until(lambda: is_up(office), "all processes to be up")

        assert office.end(number) == 0

        assert office.processes() == []
        assert "The office is closed." in office.printed
        log = (office.home / "logs" / "supervisor.log").read_text()
        assert re.findall(r"stopped: (\w+) \(exit status 0\)", log) == [*reversed(LASTING)]


def test_stop_closes_it_from_outside_and_a_second_start_is_quick(tmp_path: Path):
    with started(Office(tmp_path / "home")) as office:
        office.open()
        assert office.manage("stop").returncode == 0
        assert office.wait() == 0
        assert office.processes() == []

    closed = manage("status", TINYAGI_HOME=str(tmp_path / "home"))
    assert closed.returncode == 1
    assert re.search(r"^Office +closed$", closed.stdout, re.M)
    assert manage("stop", TINYAGI_HOME=str(tmp_path / "home")).returncode == 1

    with started(Office(tmp_path / "home")) as again:
        again.open()
        assert again.end() == 0


def test_a_signal_during_the_start_stops_it_too(tmp_path: Path):
    with started(Office(tmp_path / "home")) as office:
        until(lambda: office.processes("tinyoffice.keeper"), "the keeper")

        assert office.end() == 0
        assert office.processes() == []


def test_no_process_survives_a_killed_supervisor(tmp_path: Path):
    with started(Office(tmp_path / "home")) as office:
        office.open()
        until(lambda: is_up(office), "all processes to be up")
        (keeper,) = office.processes("tinyoffice.keeper")

        os.kill(keeper, signal.SIGKILL)

        assert office.wait() == 1
        until(lambda: not office.processes(), "the last process to end")
        assert "ended unasked (status -9)" in office.printed


def test_no_process_survives_a_killed_office(tmp_path: Path):
    with started(Office(tmp_path / "home")) as office:
        office.open()
        until(lambda: is_up(office), "all processes to be up")

        office.end(signal.SIGKILL)

        until(lambda: not office.processes(), "the last process to end")
        log = (office.home / "logs" / "supervisor.log").read_text()
        assert re.findall(r"stopped: (\w+) \(exit status 0\)", log) == [*reversed(LASTING)]


def test_a_public_address_is_refused_without_tls_and_without_a_password(tmp_path: Path):
    values = {
        "TINYAGI_HOME": str(tmp_path / "home"),
        "TINYAGI_API_PORT": str(free_port()),
        "TINYAGI_API_HOST": "0.0.0.0",  # noqa: S104
    }

    open_air = manage("office", **values)
    no_password = manage("office", TINYAGI_BEHIND_TLS="1", **values)

    assert (open_air.returncode, no_password.returncode) == (1, 1)
    assert "TINYAGI_API_HOST is '0.0.0.0'" in open_air.stderr
    assert "TINYAGI_BEHIND_TLS=1" in open_air.stderr
    assert "manage.py changepassword owner" in no_password.stderr


def test_a_pipe_may_lead_into_a_file_and_is_not_private():
    ours, theirs = os.pipe()

    assert not is_private(theirs)
    os.close(ours)
    os.close(theirs)


def test_output_that_is_kept_shows_no_login_link(tmp_path: Path):
    file = tmp_path / "output"
    command = ["sh", "-c", 'exec "$0" "$1" office > "$2" 2>&1', *OFFICE, str(file)]
    with started(Office(tmp_path / "home", command)) as office:
        until(office.healthy, "an answer")
        until(lambda: "Ctrl-C" in file.read_text(), "the welcome")

        assert "/login/" not in file.read_text()
        assert "manage.py login_link" in file.read_text()
        assert office.end() == 0


OFFICE = (sys.executable, "manage.py")
