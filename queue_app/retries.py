"""What follows a failure: charged or not, waiting how long, dead or not; pure."""

from __future__ import annotations

from dataclasses import dataclass

from queue_app.faults import Blame, ErrorClass, Fault
from tinyoffice.conf import QueueConf

FIRST_BLOCK = 60_000
LONGEST_BLOCK = 3_600_000
SOONEST_RESET = 1_000
JITTER = 0.2

# Trying again rarely helps here, and costs the most.
_FEWER_ATTEMPTS = {ErrorClass.REFUSED: 1, ErrorClass.TIMEOUT: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What happens to the messages of a failed run and to their lane."""

    charged: bool
    dead: bool
    wait: int  # milliseconds the lane stays blocked, so that the order of its messages is kept
    blames_agent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of the messages and their lane before the failure."""

    attempts: int  # spent before this one; the most of any message in the batch
    alone: bool
    strikes: int  # failures of the agent in a row


def judge(fault: Fault, record: Record, conf: QueueConf, *, now: int, chance: float) -> Verdict:
    """Decide by whose fault it is; `chance` from -1 to 1 spreads the waits."""
    if fault.blame is Blame.AGENT:
        return Verdict(
            charged=False, dead=False, wait=_block(fault, record.strikes, now), blames_agent=True
        )
    spent = record.attempts + 1
    most = min(_FEWER_ATTEMPTS.get(fault.error_class, conf.max_attempts), conf.max_attempts)
    # A batch never dies: from now on each of its messages runs alone, so only the poison does.
    dead = record.alone and spent >= most
    wait = 0 if dead else round(_ladder(fault, spent, conf) * (1 + JITTER * chance))
    return Verdict(charged=True, dead=dead, wait=wait, blames_agent=False)


def _block(fault: Fault, strikes: int, now: int) -> int:
    if fault.reset_at is not None:
        return max(SOONEST_RESET, fault.reset_at - now)
    return min(FIRST_BLOCK << min(strikes, 10), LONGEST_BLOCK)


def _ladder(fault: Fault, spent: int, conf: QueueConf) -> int:
    """Return the wait after the attempt; a first loss or a session's fault is tried again at once."""
    rung = spent - 1
    if fault.error_class is ErrorClass.LOST or fault.blame is Blame.SESSION:
        rung -= 1
    if rung < 0:
        return 0
    return conf.retry_waits[min(rung, len(conf.retry_waits) - 1)]
