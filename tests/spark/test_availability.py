"""The Spark part: whether it is there, being fetched or missing, and waiting for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from spark import availability, fetching
from spark.availability import SparkMissing, State
from tests.offices import ROOT

HOLD = "from spark import availability; import sys; availability.lock(); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own that wants something nobody has."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    wants(tmp_path, monkeypatch, "tinyoffice-of-nowhere==1.0")
    return tmp_path


def wants(directory: Path, monkeypatch: pytest.MonkeyPatch, requirement: str) -> None:
    file = directory / "requirements.txt"
    file.write_text(f"Django==5.2\n{requirement}  # spark\n")
    monkeypatch.setattr(availability, "REQUIREMENTS", file)
    monkeypatch.setattr(fetching, "REQUIREMENTS", file)


@pytest.fixture
def fetcher(environment: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that is at it."""
    program = f"import sys; sys.prefix = {str(environment)!r}; {HOLD}"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_spark_part_is_what_the_requirements_mark():
    wanted = availability.requirements(availability.REQUIREMENTS.read_text())

    assert [line.partition("==")[0] for line in wanted] == ["pyspark", "py4j"]
    assert availability.requirements("a==1\nb==2  # spark\n# spark in a comment\n") == ["b==2"]


def test_it_is_installed_when_every_line_is(environment: Path, monkeypatch: pytest.MonkeyPatch):
    assert availability.state() is State.MISSING

    wants(environment, monkeypatch, f"pytest=={metadata.version('pytest')}")
    assert availability.state() is State.INSTALLED

    wants(environment, monkeypatch, "pytest==0.0.1")
    assert availability.state() is State.MISSING


def test_it_is_being_fetched_for_as_long_as_the_fetcher_lives(
    environment: Path, fetcher: subprocess.Popen[str]
):
    assert availability.state() is State.FETCHING
    assert availability.lock() is None

    fetcher.kill()
    fetcher.wait()

    assert availability.state() is State.MISSING


def test_waiting_tells_how_long_and_says_what_to_do_when_it_was_in_vain(
    environment: Path, fetcher: subprocess.Popen[str]
):
    told: list[str] = []

    def progress(line: str) -> None:
        told.append(line)
        fetcher.kill()
        fetcher.wait()

    with pytest.raises(SparkMissing, match=r"Run `manage\.py fetch_spark`"):
        availability.wait(progress)

    assert told == ["Waiting for the Spark part to be fetched: 0 s"]


def test_waiting_for_what_is_there_takes_no_time(
    environment: Path, monkeypatch: pytest.MonkeyPatch
):
    wants(environment, monkeypatch, f"pytest=={metadata.version('pytest')}")

    availability.wait(pytest.fail)


def test_a_fetch_leaves_the_work_to_the_one_who_is_at_it(
    environment: Path, fetcher: subprocess.Popen[str]
):
    told: list[str] = []

    assert fetching.fetch(told.append)
    assert told == ["The Spark part is being fetched by another process."]


def test_a_fetch_that_fails_is_tried_again_and_then_given_up(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(fetching, "WAITS", (0, 0))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    told: list[str] = []

    assert not fetching.fetch(told.append)

    assert told == [
        "Fetching tinyoffice-of-nowhere==1.0: try 1 of 2.",
        "pip ended with status 1.",
        "Fetching tinyoffice-of-nowhere==1.0: try 2 of 2.",
        "pip ended with status 1.",
    ]
    assert "tinyoffice-of-nowhere" in capfd.readouterr().err
    assert availability.state() is State.MISSING
