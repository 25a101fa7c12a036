"""R5: completion, answers, handoffs and events commit together, wherever the office is cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents_app.office import IN_A_HURRY
from tests.processes import Child

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

ROUNDS = 3
KEPT = "It is kept under Dead letters, where it can be retried or discarded."
WORLD = {
    "messages": [
        ["ann", "None", "tell them", "completed"],
        ["bob", "ann", "it is done", "completed"],
        ["cat", "user", "hi", "completed"],
        ["flaky", "None", "one", "completed"],
        ["lead", "None", "make it", "completed"],
        ["mate", "lead", "I will.\n\n------\n\nFor you, @mate:\nbuild it", "completed"],
        ["rude", "None", "two", "dead"],
        ["stuck", "None", "wait", "dead"],
    ],
    "responses": [
        ["ann", "Told. @ann → #hall: it is done"],
        ["flaky", "At last."],
        ["lead", "I will. @lead → @mate: build it"],
        ["mate", "Built."],
        ["rude", f"@rude could not answer “two”: No. {KEPT}"],
        ["stuck", f"@stuck could not answer “wait”: Stopped by Alice. {KEPT}"],
    ],
    "posts": [["ann", "it is done"], ["bob", "Fine."], ["cat", "Purr."], ["user", "hi"]],
}
# Each of these is written or started at least once, so a crash must have hit it.
PLACES = {
    "INSERT INTO intakes",
    "INSERT INTO conversations",
    "INSERT INTO messages",
    "INSERT INTO lanes",
    "INSERT INTO agent_messages",
    "INSERT INTO events",
    "INSERT INTO runs",
    "INSERT INTO run_messages",
    "INSERT INTO responses",
    'INSERT INTO "chat_messages"',
    "UPDATE lanes SET run_id = %s",
    "UPDATE lanes SET run_id = NULL",
    "UPDATE messages SET status = 'processing'",
    "UPDATE messages SET status = 'completed'",
    "UPDATE messages SET status = 'dead'",
    "UPDATE messages SET status = 'pending'",
    "UPDATE conversations",
    'UPDATE "conversations"',
    "UPDATE runs",
    'UPDATE "runs"',
    "before a start",
    "after a start",
}


def crash_everywhere() -> list[dict[str, Any]]:
    found = []
    one_at_a_time = IN_A_HURRY | {"TINYAGI_MAX_RUNS": "1"}
    with Child("crash_everywhere", environment=one_at_a_time) as child:
        while (line := child.line()) != "end":
            assert line, "the process that crashes others failed itself"
            found.append(json.loads(line))
    return found


def test_r5_wherever_the_office_is_cut_off_the_same_world_comes_out() -> None:
    hit: set[str] = set()
    # Two threads write at the stop, so a number may mean another step in the next run and pass one over.
    for _ in range(ROUNDS):
        *crashes, whole = crash_everywhere()
        assert whole == {"at": "", "settled": True, "world": WORLD, "wrong": []}
        for crash in crashes:
            assert crash == whole | {"at": crash["at"]}
        hit |= {place for place in PLACES if any(place in crash["at"] for crash in crashes)}
        if hit == PLACES:
            break

    assert hit == PLACES
