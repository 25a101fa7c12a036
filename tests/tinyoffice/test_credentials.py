"""Tokens: shown once, stored as digests, and refused when they should be."""

from __future__ import annotations

import hashlib
import stat
import threading
from pathlib import Path

import pytest
from django.db import connection

from queue_app import clock
from tinyoffice import credentials, founding
from tinyoffice.models import Token
from tinyoffice.storage import StorageUnusable

HOUR = 3_600_000


@pytest.mark.django_db
def test_only_the_digest_is_stored():
    text = credentials.make("laptop", "operator", run_id=7)

    row = Token.objects.get()
    assert text.startswith(f"toff_{row.prefix}_")
    assert (row.name, row.scope, row.run_id) == ("laptop", "operator", 7)
    assert row.digest == hashlib.sha256(text.encode()).hexdigest()
    assert text not in str(Token.objects.values())
    assert text.rpartition("_")[2] not in str(Token.objects.values())


@pytest.mark.django_db
def test_a_token_is_known_by_its_whole_text():
    text = credentials.make("laptop", "viewer")

    found = credentials.verify(text)
    assert found is not None
    assert found.scope == "viewer"
    assert credentials.verify(text[:-1]) is None
    assert credentials.verify(text[:-1] + ("0" if text[-1] != "0" else "1")) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text",
    ["", "toff_", "toff_12345678_", "Bearer", "toff_ä2345678_" + "0" * 48, "x" * 10_000, "\0"],
)
def test_what_is_no_token_is_refused(text: str):
    assert credentials.verify(text) is None
    assert not credentials.opens(text)
    assert not credentials.spend_login(text)


@pytest.mark.django_db
def test_an_expired_or_revoked_token_is_refused():
    expired = credentials.make("old", "viewer", expires=clock.now() - 1)
    revoked = credentials.make("lost", "viewer", expires=clock.now() + HOUR)
    assert credentials.verify(revoked) is not None
    Token.objects.filter(name="lost").update(revoked_at=clock.now())

    assert credentials.verify(expired) is None
    assert credentials.verify(revoked) is None


@pytest.mark.django_db
def test_use_is_noted_once_a_minute_at_most(django_assert_num_queries):
    text = credentials.make("laptop", "viewer")
    credentials.verify(text)
    noted = Token.objects.get().last_used_at
    assert noted is not None

    credentials.verify(text)
    assert Token.objects.get().last_used_at == noted

    Token.objects.update(last_used_at=noted - 61_000)
    credentials.verify(text)
    assert (Token.objects.get().last_used_at or 0) >= noted


@pytest.mark.django_db
def test_a_login_link_opens_its_page_and_no_api():
    text = credentials.make_login()

    assert credentials.opens(text)
    assert credentials.verify(text) is None


@pytest.mark.django_db
def test_a_login_link_is_good_for_ten_minutes():
    fresh = credentials.make_login(clock.now() - credentials.LOGIN_LIFETIME + 30_000)
    stale = credentials.make_login(clock.now() - credentials.LOGIN_LIFETIME)

    assert credentials.opens(fresh)
    assert not credentials.opens(stale)
    assert not credentials.spend_login(stale)
    assert credentials.spend_login(fresh)
    assert not credentials.spend_login(fresh)
    assert not credentials.opens(fresh)


@pytest.mark.django_db
def test_a_token_of_another_scope_is_no_login_link():
    text = credentials.make("laptop", "owner")

    assert not credentials.opens(text)
    assert not credentials.spend_login(text)
    assert credentials.verify(text) is not None


@pytest.mark.django_db(transaction=True)
def test_of_many_who_spend_a_link_at_once_one_gets_in():
    text = credentials.make_login()
    gate = threading.Barrier(8)
    got_in: list[bool] = []

    def spend() -> None:
        gate.wait()
        got_in.append(credentials.spend_login(text))
        connection.close()

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(got_in) == [False] * 7 + [True]


@pytest.mark.django_db
def test_the_owners_token_is_made_once_and_registered_again_when_its_row_is_gone(tmp_path: Path):
    file = tmp_path / "token"
    founding.ensure_token(file)
    first = file.read_text()
    assert first.endswith("\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    Token.objects.all().delete()
    file.chmod(0o644)
    founding.ensure_token(file)
    founding.ensure_token(file)

    assert file.read_text() == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Token.objects.count() == 1
    found = credentials.verify(first.strip())
    assert found is not None
    assert found.scope == "owner"


@pytest.mark.django_db
def test_a_token_file_that_holds_something_else_is_refused(tmp_path: Path):
    (tmp_path / "token").write_text("my notes\n")

    with pytest.raises(StorageUnusable, match="should hold the owner's token"):
        founding.ensure_token(tmp_path / "token")

    assert (tmp_path / "token").read_text() == "my notes\n"


@pytest.mark.django_db
def test_a_new_office_has_an_owner_without_password_and_an_agent_who_answers():
    from agents_app.models import Agent
    from queue_app.models import Lane

    founding.ensure_agent()
    founding.ensure_agent()
    owner = founding.ensure_owner()

    assert (owner.username, owner.is_superuser, owner.has_usable_password()) == (
        "owner",
        True,
        False,
    )
    assert list(Agent.objects.values_list("id", "provider")) == [("tinyagi", "rehearsal")]
    assert Lane.objects.filter(name="agent:tinyagi").exists()


@pytest.mark.django_db
def test_a_default_agent_that_was_deleted_for_others_stays_deleted():
    from agents_app.models import Agent

    founding.ensure_agent()
    Agent.objects.filter(id="tinyagi").update(id="coder")

    founding.ensure_agent()

    assert list(Agent.objects.values_list("id", flat=True)) == ["coder"]
