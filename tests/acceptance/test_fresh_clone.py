"""A newcomer's machine: a clone, an empty home, python3, sh and coreutils, and no rights."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import pytest

from tests.offices import ROOT, Office, started, until

NOBODY = 65_534
COREUTILS = (
    "basename",
    "cat",
    "chmod",
    "cp",
    "dirname",
    "head",
    "id",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
)
COREUTILS += ("mv", "printf", "rm", "rmdir", "sort", "tail", "touch", "tr", "uname", "wc")
SUITS = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
# Installing may mean downloading.
INSTALL_SECONDS = 600

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


def identity() -> dict[str, object]:
    if os.getuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def python() -> str:
    """Return a python3 that suits and that a user without rights can run."""
    for found in (
        getattr(sys, "_base_executable", ""),
        "/usr/local/bin/python3",
        "/usr/bin/python3",
    ):
        try:
            subprocess.run([found, "-c", SUITS], check=True, capture_output=True, **identity())
        except (OSError, subprocess.CalledProcessError):
            continue
        return found
    pytest.skip("no python3 with venv that a user without rights can run")


def pip_settings() -> dict[str, str]:
    """Return this machine's pip configuration as variables, for the newcomer's home has none."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^[\w:.]+\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    return {f"PIP_{key.upper().replace('-', '_')}": value for key, value in found}


class Machine:
    """A directory with everything such a machine has."""

    def __init__(self, directory: Path) -> None:
        self.clone, self.home, self.path = (directory / name for name in ("clone", "home", "bin"))
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], check=True)
        self.home.mkdir()
        self.path.mkdir()
        (self.path / "python3").symlink_to(python())
        for name in ("sh", *COREUTILS):
            if found := shutil.which(name):
                (self.path / name).symlink_to(found)
        if os.getuid() == 0:
            for entry in (directory, *directory.rglob("*")):
                os.chown(entry, NOBODY, NOBODY, follow_symlinks=False)

    @functools.cached_property
    def environment(self) -> dict[str, str]:
        temporary = self.home.parent / "tmp"
        temporary.mkdir(mode=0o777)
        temporary.chmod(0o777)
        return pip_settings() | {
            "PATH": str(self.path),
            "HOME": str(self.home),
            "TMPDIR": str(temporary),
        }

    def start(self) -> Office:
        return Office(
            self.home / ".tinyagi",
            [str(self.clone / "script" / "server")],
            environment=self.environment,
            user=NOBODY if os.getuid() == 0 else None,
            cwd=self.clone,
        )


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """The machine of the newcomer."""
    if shutil.which("git") is None:
        pytest.skip("there is no git to clone with")
    with tempfile.TemporaryDirectory(prefix="toff-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Machine(Path(name))


def log_in(link: str) -> str:
    """Open the link as a browser would, press the button and return the page behind it."""
    browser = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
    with browser.open(link, timeout=20) as page:
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert found
    form = urlencode({"csrfmiddlewaretoken": found.group(1)}).encode()
    with browser.open(link, form, timeout=20) as page:
        return str(page.read().decode())


def test_a_newcomer_starts_the_office_with_one_command(machine: Machine):
    with started(machine.start()) as office:
        link = office.open(INSTALL_SECONDS)
        assert "Making .venv" in office.printed

        assert office.healthy()
        assert office.get("/api/queue/status")[0] == 401
        assert "Site administration" in log_in(link)
        assert office.get(link.partition(str(office.port))[2])[0] == 410

        token = office.home / "token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        bearer = f"Bearer {token.read_text().removesuffix(chr(10))}"
        assert office.get("/api/nothing", Authorization=bearer)[0] == 404

        (web,) = office.processes("manage.py web")
        os.kill(web, signal.SIGKILL)
        until(lambda: office.processes("manage.py web") not in ([], [web]), "the web server again")
        until(office.healthy, "an answer")

        assert office.end() == 0
        assert office.processes() == []
        secret = link.rpartition("_")[2]
        for file in (office.home / "logs").iterdir():
            assert secret not in file.read_text(errors="replace"), file.name


def test_the_spark_part_is_fetched_behind_it_and_a_second_start_installs_nothing(machine: Machine):
    assert (machine.clone / ".venv").exists(), "the first start is another test"
    began = time.monotonic()

    with started(machine.start()) as office:
        office.open()
        took = time.monotonic() - began
        assert "Installing" not in office.printed
        assert took < 15, f"the second start took {took:.1f} s"
        log = (office.home / "logs" / "spark.log").read_text()
        assert "Fetching pyspark==" in log

        assert office.end() == 0
        assert office.processes() == []


@pytest.mark.parametrize(
    ("python3", "sentence"),
    [
        ("", "needs Python 3.11 or newer, and 'python3' cannot be run"),
        ("case $2 in *print*) echo 3.9.2;; *) exit 1;; esac", "and 'python3' is 3.9.2"),
        ('case $2 in *ensurepip*) exit 1;; *) exec {} "$@";; esac', "lacks the venv module"),
    ],
)
def test_a_python_that_does_not_suit_is_told_in_a_sentence(
    tmp_path: Path, python3: str, sentence: str
):
    shutil.copytree(ROOT / "script", tmp_path / "script")
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dirname", "cat"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    if python3:
        file = tmp_path / "bin" / "python3"
        file.write_text(f"#!/bin/sh\n{python3.format(sys.executable)}\n")
        file.chmod(0o755)

    refused = subprocess.run(
        [tmp_path / "script" / "server"],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert refused.returncode == 1
    assert sentence in refused.stderr
    assert not (tmp_path / ".venv").exists()
