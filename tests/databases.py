"""Gives the tests a home and a database of their own before Django is loaded.

`--database=postgresql` starts a real PostgreSQL server for the round. Where its programs are not
installed the round ends with a sentence; under CI that is a failure.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=["sqlite", "postgresql"], default="sqlite")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    home = Path(tempfile.mkdtemp(prefix="toff-"))
    early_config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    for name in [name for name in os.environ if name.startswith(("TINYAGI_", "TINYCLAW_"))]:
        del os.environ[name]
    os.environ["TINYAGI_HOME"] = str(home / "home")
    os.environ["TINYAGI_WORKSPACE"] = str(home / "workspace")
    # Sockets of the tests' offices go with the home; its path is short enough for them.
    (home / "run").mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(home / "run")
    os.environ.pop("DATABASE_URL", None)
    if early_config.known_args_namespace.database == "postgresql":
        server = PostgresServer(home / "postgres", durable=False)
        early_config.add_cleanup(server.stop)
        os.environ["DATABASE_URL"] = server.start()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    other = {"sqlite": "postgresql_only", "postgresql": "sqlite_only"}
    marker = other[config.getoption("--database")]
    left_out = [item for item in items if item.get_closest_marker(marker)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


class PostgresServer:
    """A server in a directory of its own, reached by a unix socket only."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.directory = directory
        self.durable = durable
        self.programs = _programs()

    def start(self) -> str:
        self.directory.mkdir()
        if os.getuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self.directory, account.pw_uid, account.pw_gid)
            # The server runs as another user and must get through the private directory above.
            self.directory.parent.chmod(0o711)
        data = self.directory / "data"
        self._run("initdb", "-D", data, "-U", "tinyoffice", "--auth=trust", "-E", "UTF8")
        self._run(
            "pg_ctl", "-D", data, "-w", "-l", self.directory / "log", "-o", self._options(), "start"
        )
        socket = str(self.directory).replace("/", "%2F")
        return f"postgres://tinyoffice@{socket}/tinyoffice"

    def stop(self) -> None:
        if (self.directory / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", self.directory / "data", "-m", "immediate", "stop")

    def _options(self) -> str:
        # Tests kill processes, never the machine: what the server has need not be on disk.
        fsync = "on" if self.durable else "off"
        return (
            f"-c listen_addresses='' -c unix_socket_directories='{self.directory}' -c fsync={fsync}"
        )

    def _run(self, program: str, *arguments: str | Path) -> None:
        as_postgres = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        done = subprocess.run(
            [self.programs / program, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.directory,
            check=False,
            **as_postgres,
        )
        if done.returncode:
            raise pytest.UsageError(f"{program} failed: {done.stderr or done.stdout}")


def _programs() -> Path:
    for initdb in [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)]:
        return initdb.parent
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    sentence = "PostgreSQL's server programs are not installed; this round cannot run"
    if os.environ.get("CI"):
        raise pytest.UsageError(sentence)
    pytest.exit(f"{sentence} (install Debian's `postgresql` to run it).", returncode=0)
