"""Start-up values: every variable, good and bad, and the old names."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from tests.offices import manage
from tinyoffice import conf

GOOD = [
    ("TINYAGI_HOME", "/srv/office", "home", Path("/srv/office")),
    ("TINYAGI_HOME", " /srv/office ", "home", Path("/srv/office")),
    ("TINYAGI_WORKSPACE", "/srv/work", "workspace", Path("/srv/work")),
    ("TINYAGI_API_HOST", "localhost", "web.host", "localhost"),
    ("TINYAGI_API_HOST", "::1", "web.url", "http://[::1]:3777"),
    ("TINYAGI_API_HOST", "192.168.0.1", "web.is_loopback", False),
    ("TINYAGI_API_HOST", "127.0.0.2", "web.is_loopback", True),
    ("TINYAGI_API_PORT", "1", "web.port", 1),
    ("TINYAGI_API_PORT", "65535", "web.port", 65535),
    ("TINYAGI_BEHIND_TLS", "1", "web.behind_tls", True),
    ("TINYAGI_BEHIND_TLS", "0", "web.behind_tls", False),
    ("TINYAGI_PUBLIC_URL", "https://Office.example/", "web.public_url", "https://office.example"),
    ("TINYAGI_PUBLIC_URL", "https://o.example:8443", "web.url", "https://o.example:8443"),
    ("TINYAGI_MAX_RUNS", "3", "processor.slots", 3),
    ("TINYAGI_RUN_SECONDS", "5", "processor.run_for", 5_000),
    ("TINYAGI_SILENCE_SECONDS", "0.5", "processor.silent_for", 500),
    ("TINYAGI_DRAIN_SECONDS", "2", "processor.drain", 2_000),
    ("TINYAGI_BEAT_SECONDS", "0.1", "queue.beat_every", 100),
    ("TINYAGI_LOST_AFTER_SECONDS", "60", "queue.lost_after", 60_000),
    ("TINYAGI_LOST_AFTER_SECONDS", "60", "queue.starved_after", 45_000),
    ("TINYAGI_MAX_ATTEMPTS", "1", "queue.max_attempts", 1),
    ("TINYAGI_RETRY_WAITS", "0.5, 2", "queue.retry_waits", (500, 2_000)),
    ("DATABASE_URL", "postgres://ann:p%40ss@db.lan:5433/office", "postgres.password", "p@ss"),
    ("DATABASE_URL", "postgresql://%2Frun%2Fpg/office", "postgres.host", "/run/pg"),
]

BAD = [
    ("TINYAGI_PUBLIC_URL", ["http://office.example", "office.example", "https://a.example/x"]),
    ("TINYAGI_MAX_RUNS", ["0", "1001", "many"]),
    ("TINYAGI_RUN_SECONDS", ["0", "-1", "inf"]),
    ("TINYAGI_HOME", ["office", "./x", "../x", "~no-such-user/office"]),
    ("TINYAGI_WORKSPACE", ["work", "."]),
    ("TINYAGI_API_HOST", ["office.example", "1.2.3", "0x7f000001", "127.0.0.1:80"]),
    ("TINYAGI_API_PORT", ["0", "65536", "-1", "3777.5", "http", "³", "1e3"]),
    ("TINYAGI_BEHIND_TLS", ["yes", "true", "2"]),
    ("TINYAGI_BEAT_SECONDS", ["0", "-5", "soon", "nan", "inf", "86401"]),
    ("TINYAGI_LOST_AFTER_SECONDS", ["0", "never", "9.9"]),
    ("TINYAGI_MAX_ATTEMPTS", ["0", "101", "many"]),
    ("TINYAGI_RETRY_WAITS", ["1,,2", "1;2", "a", "0"]),
    ("DATABASE_URL", ["mysql://x/y", "postgres://host", "postgres:///", "office.db"]),
]


def test_without_any_variable_the_defaults_stand():
    found = conf.load({"HOME": "/home/ann"})

    assert found.home == Path("/home/ann/.tinyagi")
    assert found.workspace == Path("/home/ann/tinyagi-workspace")
    assert found.database_file == Path("/home/ann/.tinyagi/tinyagi.db")
    assert (found.web.host, found.web.port, found.web.behind_tls) == ("127.0.0.1", 3777, False)
    assert found.web.url == "http://127.0.0.1:3777"
    assert found.postgres is None
    assert found.queue.max_attempts == 5


@pytest.mark.parametrize(("variable", "text", "field", "value"), GOOD)
def test_a_good_value_counts(variable: str, text: str, field: str, value: Any):
    assert attrgetter(field)(conf.load({variable: text})) == value


@pytest.mark.parametrize(
    ("variable", "text"), [(name, text) for name, texts in BAD for text in texts]
)
def test_a_bad_value_stops_the_start_with_its_name(variable: str, text: str):
    with pytest.raises(conf.BadSetting) as refused:
        conf.load({variable: text})

    assert str(refused.value).startswith(f"{variable} is '{text}', which the office cannot use.")
    assert "Accepted: " in str(refused.value)
    assert f"Change or unset {variable}" in str(refused.value)


@pytest.mark.parametrize("variable", sorted({name for name, _ in BAD}))
def test_an_empty_value_is_an_unset_one(variable: str):
    assert conf.load({variable: " ", "HOME": "/h"}) == conf.load({"HOME": "/h"})


@pytest.mark.parametrize(
    ("older", "newer", "text", "field", "value"),
    [
        ("TINYCLAW_HOME", "TINYAGI_HOME", "/srv/old", "home", Path("/srv/old")),
        ("TINYCLAW_API_PORT", "TINYAGI_API_PORT", "4000", "web.port", 4000),
    ],
)
def test_an_old_name_counts_with_a_warning(
    older: str, newer: str, text: str, field: str, value: Any
):
    with pytest.warns(UserWarning, match=f"{older} is the old name of {newer}; set {newer}"):
        found = conf.load({older: text})

    assert attrgetter(field)(found) == value


def test_the_newer_name_wins_over_the_old_without_a_word():
    found = conf.load({"TINYCLAW_API_PORT": "4000", "TINYAGI_API_PORT": "5000"})

    assert found.web.port == 5000


def test_a_bad_value_under_an_old_name_is_named_as_it_was_given():
    with (
        pytest.warns(UserWarning, match="old name"),
        pytest.raises(conf.BadSetting, match=r"^TINYCLAW_API_PORT is 'x'"),
    ):
        conf.load({"TINYCLAW_API_PORT": "x"})


def test_a_password_is_not_shown():
    with pytest.raises(conf.BadSetting) as refused:
        conf.load({"DATABASE_URL": "mysql://ann:hunter2@db/office"})

    assert "hunter2" not in str(refused.value)
    assert "mysql://ann:***@db/office" in str(refused.value)


def test_a_command_ends_with_the_sentence_and_no_traceback(tmp_path: Path):
    refused = manage("status", TINYAGI_HOME=str(tmp_path), TINYAGI_API_PORT="many")

    assert refused.returncode == 1
    assert refused.stderr == (
        "tinyoffice: TINYAGI_API_PORT is 'many', which the office cannot use. Accepted: a whole "
        "number from 1 to 65535. Change or unset TINYAGI_API_PORT and start again.\n"
    )
