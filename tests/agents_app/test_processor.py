"""R7: order within an agent, agents side by side, each message answered once, by one processor or two."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise

import pytest

from agents_app import staff
from queue_app.models import Message, Response, RunMessage
from tests.agents_app import office
from tests.factories import row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

MESSAGES = 1_000


def test_r7_three_agents_work_side_by_side() -> None:
    for agent, seconds in (("ada", 0.6), ("ben", 0.4), ("cleo", 0.3)):
        office.hire(agent, delay=seconds)
        office.send("go", agent)

    with office.processor() as processor:
        processor.wait_until(office.settled)

    (ada,), (ben,), (cleo,) = (office.runs(agent) for agent in ("ada", "ben", "cleo"))
    last_start = max(run.started for run in (ada, ben, cleo))
    first_end = min(run.finished for run in (ada, ben, cleo))
    assert last_start < first_end
    assert ada.run_ms >= 600


def test_r7_two_messages_to_one_agent_run_one_after_the_other_in_order() -> None:
    office.hire("ada", delay=0.2)
    sent = [office.send(text, "ada").message_id for text in ("first", "second")]

    with office.processor() as processor:
        processor.wait_until(office.settled)

    first, second = office.runs("ada")
    assert first.finished <= second.started
    given = RunMessage.objects.order_by("run_id").values_list("message_id", flat=True)
    assert list(given) == sent


@pytest.mark.parametrize("processors", [1, 2])
def test_a_thousand_messages_over_twenty_agents_are_answered_once_and_in_order(
    processors: int,
) -> None:
    agents = [f"a{number}" for number in range(20)]
    for agent in agents:
        office.hire(agent, answer="{agent} read: {text}")
    sent = {agent: [] for agent in agents}
    for number in range(MESSAGES):
        agent = agents[number % 20]
        sent[agent].append(office.send(f"message {number}", agent).message_id)

    with ExitStack() as stack:
        started = [stack.enter_context(office.processor()) for _ in range(processors)]
        started[0].wait_until(office.settled)

    assert Message.objects.filter(status="completed").count() == MESSAGES
    answers = Response.objects.values_list("message_id", "message")
    assert len(answers) == len(dict(answers)) == MESSAGES
    for agent, message_ids in sent.items():
        given = RunMessage.objects.filter(message_id__in=message_ids).order_by("run_id")
        assert [one.message_id for one in given] == message_ids
        runs = office.runs(agent)
        assert all(run.finished <= after.started for run, after in pairwise(runs))


def test_a_vanished_workspace_is_made_again() -> None:
    office.hire("ada", answer="here")
    for place in sorted(office.workspace("ada").rglob("*"), reverse=True):
        place.rmdir() if place.is_dir() else place.unlink()
    office.workspace("ada").rmdir()
    sent = office.send("are you there?", "ada")

    with office.processor() as processor:
        processor.wait_until(office.settled)

    assert row(sent.message_id).status == "completed"
    assert (office.workspace("ada") / "AGENTS.md").exists()


def test_messages_that_wait_for_a_deleted_agent_end_dead_and_their_sender_hears_it() -> None:
    office.hire("ada", silence=True)
    office.hire("ben", answer="still here")
    running, waiting = (office.send(text, "ada").message_id for text in ("first", "second"))

    with office.processor() as processor:
        processor.wait_until(lambda: office.at_work("ada"))
        farewell = staff.delete_agent("ada", "Alice")
        other = office.send("and you?", "ben")
        processor.wait_until(office.settled)

    assert farewell is not None
    assert (farewell.cancelled, farewell.stopped) == (1, 1)
    assert row(other.message_id).status == "completed"
    assert [(row(one).status, row(one).error_class) for one in (running, waiting)] == [
        ("dead", "stopped"),
        ("dead", "cancelled"),
    ]
    assert "@ada was deleted" in Response.objects.get(message_id=waiting).message
    assert not office.at_work("ada")
