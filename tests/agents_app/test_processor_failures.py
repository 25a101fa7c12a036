"""However a run fails, its message comes to the end that docs/queue.md promises, and the lane goes on."""

from __future__ import annotations

from typing import Any

import pytest

from queue_app.batches import Batching
from queue_app.models import Event, Lane, Message, Response
from tests.agents_app import office
from tests.factories import row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

MOST_ATTEMPTS = 5

# Scripts that never answer: how the message ends, and after how many attempts.
ENDS: dict[str, tuple[dict[str, Any], str, int]] = {
    "refused": ({"fail": "refused"}, "refused", 1),
    "timeout": ({"fail": "timeout"}, "timeout", 2),
    "context": ({"fail": "context"}, "context", MOST_ATTEMPTS),
    "session": ({"fail": "session"}, "session", MOST_ATTEMPTS),
    "crash": ({"crash": True}, "crash", MOST_ATTEMPTS),
    "exit-code": ({"exit": 3}, "crash", MOST_ATTEMPTS),
    "no-output": ({"exit": 0}, "output", MOST_ATTEMPTS),
    "bad-bytes": ({"bad_bytes": True, "exit": 0}, "output", MOST_ATTEMPTS),
    "one-long-line": ({"lines": 1, "line_bytes": 20_000_000, "exit": 0}, "output", MOST_ATTEMPTS),
    "many-lines": ({"lines": 60_000, "line_bytes": 1_000}, "output", MOST_ATTEMPTS),
}


def test_each_failure_of_a_message_ends_dead_after_its_attempts_and_frees_the_lane() -> None:
    sent = {}
    for name, (script, _, _) in ENDS.items():
        office.hire(name, **script)
        sent[name] = office.send("go", name).message_id

    with office.processor() as processor:
        processor.wait_until(office.settled)

    found = {name: (row(one).status, row(one).error_class) for name, one in sent.items()}
    assert found == {name: ("dead", expected) for name, (_, expected, _) in ENDS.items()}
    attempts = {name: len(office.runs(name)) for name in ENDS}
    assert attempts == {name: count for name, (_, _, count) in ENDS.items()}
    notices = Response.objects.values_list("message_id", flat=True)
    assert sorted(notices) == sorted(sent.values()), "every sender heard of it once"
    assert not Lane.objects.filter(run_id__isnull=False).exists()
    assert not [name for name in ENDS if office.at_work(name)]


@pytest.mark.parametrize("error_class", ["auth", "missing", "limit", "budget", "endpoint"])
def test_an_agents_own_failure_blocks_its_lane_and_costs_the_message_nothing(
    error_class: str,
) -> None:
    office.hire("ada", fail=error_class, message="Not now.", reset_in=600)
    office.hire("ben", answer="yes")
    sent = office.send("go", "ada")

    with office.processor() as processor:
        processor.wait_until(lambda: Event.objects.filter(type="lane_blocked").exists())
        other = office.send("are you there?", "ben")
        processor.wait_until(lambda: row(other.message_id).status == "completed")
        waiting = row(sent.message_id)
        assert (waiting.status, waiting.retry_count) == ("pending", 0)
        lane = Lane.objects.get(name="agent:ada")
        assert (lane.run_id, lane.blocked_reason) == (None, f"{error_class}: Not now.")
        office.hire("ada", answer="back again")  # a change of settings unblocks it
        processor.wait_until(office.settled)

    assert row(sent.message_id).status == "completed"
    assert [run.outcome for run in office.runs("ada")] == ["failed", "completed"]


def test_a_silent_program_is_ended_at_its_agents_limit_and_dies_at_the_second_attempt() -> None:
    office.hire("ada", limits={"silence_seconds": 0.3}, silence=True)
    sent = office.send("go", "ada")

    with office.processor() as processor:
        processor.wait_until(office.settled)

    dead = row(sent.message_id)
    assert (dead.status, dead.error_class, dead.retry_count) == ("dead", "timeout", 2)
    assert dead.last_error == "The program wrote nothing for 0.3 s."
    assert not office.at_work("ada")


def test_a_failure_that_passes_is_tried_again_until_it_is_answered() -> None:
    office.hire("ada", crash=True, until_attempt=2, answer="at last")
    sent = office.send("go", "ada")

    with office.processor() as processor:
        processor.wait_until(office.settled)

    assert row(sent.message_id).status == "completed"
    assert [run.outcome for run in office.runs("ada")] == ["failed", "failed", "completed"]
    assert [one.message for one in Response.objects.all()] == ["at last"]


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ({"bad_bytes": True, "answer": "fine"}, "fine"),
        ({"lines": 1, "line_bytes": 20_000_000, "answer": "fine"}, "fine"),
        ({"lines": 30_000, "line_bytes": 1_000, "answer": "fine"}, "fine"),
        # PostgreSQL would not keep such a script.
        pytest.param({"answer": "nul \0 here"}, "nul \ufffd here", marks=pytest.mark.sqlite_only),
        ({"answer": "  "}, "@ada finished without a written answer."),
    ],
    ids=["not UTF-8", "one long line", "much", "NUL", "blank"],
)
def test_noise_around_an_answer_does_not_spoil_it(script: dict[str, Any], answer: str) -> None:
    office.hire("ada", **script)
    sent = office.send("go", "ada")

    with office.processor() as processor:
        processor.wait_until(office.settled)

    assert row(sent.message_id).status == "completed", row(sent.message_id).last_error
    assert Response.objects.get().message == answer


def test_r6_of_a_batch_that_crashes_its_program_each_message_is_tried_alone() -> None:
    office.hire("ada", batching=Batching.TOGETHER, crash=True)
    sent = [office.send(text, "ada").message_id for text in ("one", "two", "three")]

    with office.processor(TINYAGI_MAX_ATTEMPTS="2") as processor:
        processor.wait_until(office.settled)

    assert {row(one).status for one in sent} == {"dead"}
    assert len(office.runs("ada")) == 1 + 3, "once together, then each alone"
    assert Message.objects.filter(retry_count=2).count() == 3


def test_r6_a_poison_message_in_a_batch_dies_alone_and_its_neighbours_are_answered() -> None:
    office.hire("ada", batching=Batching.TOGETHER, answer="read", crash=True, only_on="poison")
    texts = ["one", "two", "poison", "four", "five"]
    sent = {text: office.send(text, "ada").message_id for text in texts}

    with office.processor() as processor:
        processor.wait_until(office.settled)

    states = {text: row(message_id).status for text, message_id in sent.items()}
    assert states == dict.fromkeys(texts, "completed") | {"poison": "dead"}
    assert len(office.runs("ada")) == 9, "one together, then each alone, the poison four times"
