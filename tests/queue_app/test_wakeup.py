"""Wake-ups between processes."""

from __future__ import annotations

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, transaction

from queue_app import wakeup
from queue_app.models import Event
from tests import factories
from tests.processes import Child, children
from tinyoffice.runtime import runtime_directory

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_accepted_message_wakes_a_process_that_waits() -> None:
    with Child("wake", 3) as listener:
        assert listener.line() == "ready"
        for _ in range(3):
            factories.enqueue()
            assert listener.line() == "heard"


def test_nobody_is_woken_by_what_was_rolled_back() -> None:
    bell = wakeup.hang_up()
    with transaction.atomic():
        factories.enqueue()
        transaction.set_rollback(True)

    assert not bell.wait(0)
    factories.enqueue()
    assert bell.wait(5)
    assert not bell.wait(0), "all waiting rings count as one"
    bell.close()


def test_ringing_without_listeners_is_harmless() -> None:
    wakeup.ring()


@pytest.mark.postgresql_only
def test_a_server_that_is_down_fails_like_any_other_use_of_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**parameters: object) -> None:
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg, "connect", refuse)

    with pytest.raises(OperationalError, match="refused"):
        wakeup.hang_up()


@pytest.mark.sqlite_only
def test_bells_hang_in_a_private_directory_and_those_of_dead_processes_are_removed() -> None:
    directory = runtime_directory(settings.TINYOFFICE.home)
    assert directory.stat().st_mode & 0o777 == 0o700
    with Child("wake", 1) as listener:
        assert listener.line() == "ready"
        listener.kill()
    assert list(directory.glob("*.bell"))

    wakeup.ring()

    assert not list(directory.glob("*.bell"))


@pytest.mark.concurrency
def test_a_reader_that_has_seen_an_event_never_misses_an_earlier_one() -> None:
    with children(3, "emit", 40) as writers:
        for writer in writers:
            assert writer.line() == "ready"
        for writer in writers:
            writer.go()
        seen: list[int] = []
        while len(seen) < 120:
            after = Event.objects.filter(id__gt=seen[-1] if seen else 0).order_by("id")
            seen += after.values_list("id", flat=True)
            alive = any(writer.process.poll() is None for writer in writers)
            assert alive or after.exists() or len(seen) == 120, "events were passed over"

    assert seen == list(Event.objects.order_by("id").values_list("id", flat=True))
