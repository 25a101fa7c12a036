"""The pulse: a row that says when a process was last seen, and goes with it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings

from queue_app import holders
from queue_app.holders import Holder
from queue_app.models import Process
from queue_app.pulse import Pulse
from tests.offices import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pulse(holder: Holder) -> Iterator[Pulse]:
    """A quick pulse of the holder."""
    one = Pulse(holder, every=0.02)
    one.start()
    yield one
    one.stop()


def seen(holder: Holder) -> int:
    return Process.objects.filter(holder=holder.name).values_list("pulse", flat=True).first() or 0


def test_a_process_is_seen_again_and_again(pulse: Pulse, holder: Holder):
    first = until(lambda: seen(holder), "the first pulse")

    until(lambda: seen(holder) > first, "another")

    row = Process.objects.get(holder=holder.name)
    assert (row.name, row.host, row.pid) == ("processor", holder.host, os.getpid())
    assert row.started <= first


def test_a_row_that_was_taken_away_comes_back(pulse: Pulse, holder: Holder):
    until(lambda: seen(holder), "the first pulse")

    Process.objects.all().delete()

    until(lambda: seen(holder), "another")


def test_a_clean_end_leaves_no_row(pulse: Pulse, holder: Holder):
    until(lambda: seen(holder), "the first pulse")

    pulse.stop()

    assert not Process.objects.exists()
    assert not pulse.thread.is_alive()


def test_the_rows_of_the_dead_are_taken_away_and_those_of_the_living_stay(holder: Holder):
    living = holders.become("web", settings.TINYOFFICE.home)
    rows = (living.name, f"{holder.host}/web-1-abcdef", "elsewhere/web-1-abcdef")
    for name in rows:
        Process.objects.create(holder=name, name="web", host="", pid=1, started=1, pulse=1)

    pulse = Pulse(holder, every=0.02)
    pulse.start()
    until(lambda: seen(holder), "the first pulse")
    pulse.stop()

    assert set(Process.objects.values_list("holder", flat=True)) == {rows[0], rows[2]}
    living.release()
