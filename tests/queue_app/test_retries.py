from __future__ import annotations

import pytest

from queue_app import retries
from queue_app.faults import BLAME, Blame, ErrorClass, Fault
from queue_app.retries import Record, Verdict
from tinyoffice import conf

NOW = 1_800_000_000_000
CONF = conf.load({"HOME": "/home/alice"}).queue
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

AGENTS = [kind for kind in ErrorClass if BLAME.get(kind) is Blame.AGENT]
SESSIONS = [kind for kind in ErrorClass if BLAME.get(kind) is Blame.SESSION]


def judged(
    error_class: ErrorClass,
    attempts: int = 0,
    *,
    alone: bool = True,
    strikes: int = 0,
    chance: float = 0.0,
    reset_at: int | None = None,
) -> Verdict:
    fault = Fault(error_class=error_class, message="it broke", reset_at=reset_at)
    record = Record(attempts=attempts, alone=alone, strikes=strikes)
    return retries.judge(fault, record, CONF, now=NOW, chance=chance)


@pytest.mark.parametrize(
    ("error_class", "waits"),
    [
        (ErrorClass.CRASH, [1, 5, 30, 120, "dead"]),
        (ErrorClass.OUTPUT, [1, 5, 30, 120, "dead"]),
        (ErrorClass.TIMEOUT, [1, "dead"]),
        (ErrorClass.REFUSED, ["dead"]),
        (ErrorClass.LOST, [0, 1, 5, 30, "dead"]),
        (ErrorClass.CONTEXT, [0, 1, 5, 30, "dead"]),
        (ErrorClass.SESSION, [0, 1, 5, 30, "dead"]),
    ],
)
def test_each_attempt_waits_longer_until_the_last(
    error_class: ErrorClass, waits: list[int | str]
) -> None:
    for attempts, wait in enumerate(waits):
        verdict = judged(error_class, attempts)

        assert verdict == Verdict(
            charged=True,
            dead=wait == "dead",
            wait=0 if wait == "dead" else int(wait) * SECOND,
            blames_agent=False,
        )


@pytest.mark.parametrize("attempts", [5, 6, 100])
def test_more_attempts_than_allowed_are_dead_too(attempts: int) -> None:
    assert judged(ErrorClass.CRASH, attempts).dead


@pytest.mark.parametrize("error_class", [kind for kind in BLAME if kind not in AGENTS])
@pytest.mark.parametrize("attempts", [0, 1, 4, 50])
def test_a_batch_never_dies_but_is_charged(error_class: ErrorClass, attempts: int) -> None:
    verdict = judged(error_class, attempts, alone=False)

    assert (verdict.charged, verdict.dead) == (True, False)


def test_the_last_wait_is_kept_when_there_are_more_attempts_than_waits() -> None:
    assert judged(ErrorClass.CRASH, 40, alone=False).wait == 120 * SECOND


@pytest.mark.parametrize(
    ("chance", "wait"), [(-1.0, 24_000), (-0.5, 27_000), (0.0, 30_000), (1.0, 36_000)]
)
def test_waits_are_spread_by_a_fifth_to_both_sides(chance: float, wait: int) -> None:
    assert judged(ErrorClass.CRASH, 2, chance=chance).wait == wait


@pytest.mark.parametrize("chance", [-1.0, 1.0])
def test_a_first_loss_is_tried_again_at_once_however_waits_are_spread(chance: float) -> None:
    assert judged(ErrorClass.LOST, chance=chance).wait == 0


@pytest.mark.parametrize("error_class", AGENTS)
@pytest.mark.parametrize(
    ("strikes", "wait"),
    [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (1_000_000, 60)],
)
def test_the_agents_fault_blocks_from_a_minute_doubling_to_an_hour(
    error_class: ErrorClass, strikes: int, wait: int
) -> None:
    verdict = judged(error_class, 4, strikes=strikes)

    assert verdict == Verdict(charged=False, dead=False, wait=wait * MINUTE, blames_agent=True)


@pytest.mark.parametrize(
    ("reset_at", "wait"),
    [
        (NOW + 5 * HOUR, 5 * HOUR),
        (NOW + 90 * SECOND, 90 * SECOND),
        (NOW + 1, SECOND),
        (NOW, SECOND),
        (NOW - HOUR, SECOND),
    ],
)
def test_a_limit_with_a_reset_time_blocks_until_then_and_a_second_at_least(
    reset_at: int, wait: int
) -> None:
    assert judged(ErrorClass.LIMIT, strikes=3, reset_at=reset_at).wait == wait


def test_fewer_attempts_in_the_settings_hold_for_every_fault() -> None:
    once = conf.load({"HOME": "/home/alice", "TINYAGI_MAX_ATTEMPTS": "1"}).queue
    record = Record(attempts=0, alone=True, strikes=0)

    for error_class in (ErrorClass.CRASH, ErrorClass.TIMEOUT, ErrorClass.CONTEXT):
        fault = Fault(error_class=error_class, message="it broke")
        assert retries.judge(fault, record, once, now=NOW, chance=0.0).dead


def test_every_fault_of_a_run_is_somebodys_and_a_persons_decision_is_nobodys() -> None:
    by_people = {ErrorClass.STOPPED, ErrorClass.CANCELLED, ErrorClass.EXPIRED}

    assert set(BLAME) == set(ErrorClass) - by_people
    assert {kind.value for kind in AGENTS} == {"auth", "missing", "limit", "budget", "endpoint"}
    assert {kind.value for kind in SESSIONS} == {"context", "session"}
