"""A database that is away for a moment ends nothing."""

from __future__ import annotations

import pytest
from django.db import connection

from queue_app.models import Message
from tests import factories
from tests.processes import Child

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

PATIENCE = 30


def cut_all_others_off() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_processor_whose_connections_are_cut_goes_on_and_hears_again() -> None:
    with Child("process_queue") as processor:
        first = factories.enqueue("one", now=1)
        processor.wait_until(lambda: factories.row(first.message_id).status == "dead")

        cut_all_others_off()

        for number in range(3):
            factories.enqueue(f"again {number}", now=1)
            processor.wait_until(lambda: not Message.objects.exclude(status="dead").exists())
        processor.process.terminate()
        assert processor.process.wait(PATIENCE) == 0
