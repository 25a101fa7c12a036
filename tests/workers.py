"""What child processes of the tests do: `python -m tests.workers NAME ARGUMENTS`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import django

import tinyoffice  # noqa: F401  chooses the SQLite library

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tinyoffice.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection, connections  # noqa: E402

from queue_app import clock, holders, queue, wakeup  # noqa: E402
from queue_app.batches import Batching  # noqa: E402
from queue_app.errors import DuplicateMessage  # noqa: E402
from queue_app.holders import Holder  # noqa: E402
from queue_app.values import Claim, NewMessage, NewResponse, Outcome, Submission  # noqa: E402


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def wait_for_go() -> None:
    sys.stdin.readline()


def become_holder() -> Holder:
    return holders.become("processor", settings.TINYOFFICE.home)


def submission(text: str, agents: list[str], message_id: str | None = None) -> Submission:
    rows = [
        NewMessage(
            channel="api",
            sender="Alice",
            sender_id="alice",
            person="owner",
            message=text,
            agent=agent,
        )
        for agent in agents
    ]
    return Submission(source="api", messages=rows, message_id=message_id)


def answered(claim: Claim) -> Outcome:
    responses = [
        NewResponse(
            message_id=row.message_id,
            channel=row.channel,
            sender=row.sender,
            message=f"answer to {row.message}",
            original_message=row.message,
            agent=row.agent,
            conversation_id=row.conversation_id,
        )
        for row in claim.messages
    ]
    return Outcome(text="answer", responses=responses)


def accept_and_die(last: str) -> None:
    """Fork one process per statement of an intake; each dies by SIGKILL right after its statement."""
    for number in range(1, int(last) + 1):
        connections.close_all()
        reader, writer = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(reader)
            _accept_until_statement(number, writer)
        os.close(writer)
        acknowledged = os.read(reader, 100).decode()
        os.close(reader)
        _, status = os.waitpid(pid, 0)
        say(f"crash_{number}", acknowledged or "-", "killed" if os.WIFSIGNALED(status) else "ended")


def _accept_until_statement(number: int, writer: int) -> None:
    count = 0

    def counted(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal count
        result = execute(*args)
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    connection.ensure_connection()
    with connection.execute_wrapper(counted):
        accepted = queue.enqueue(submission("x", ["coder", "writer"], f"crash_{number}"))
        os.write(writer, accepted.message_id.encode())
    os._exit(0)


def send_the_same(message_id: str, threads: str, number: str) -> None:
    """Send one thing from several threads at once; say what each was answered."""
    say("ready")
    wait_for_go()
    with ThreadPoolExecutor(int(threads)) as pool:
        say(*pool.map(_send, [message_id] * int(threads)))


def _send(message_id: str) -> str:
    try:
        return queue.enqueue(submission("same", ["coder"], message_id)).message_id
    except DuplicateMessage as duplicate:
        return f"={duplicate.message_id}"
    finally:
        connection.close()


def drain(agents: str, batching: str, number: str) -> None:
    """Claim and complete until nothing is left; say what was claimed in which run, in order."""
    holder = become_holder()
    say("ready")
    wait_for_go()
    lanes = [queue.lane_of(f"a{index}") for index in range(int(agents))]
    idle = 0
    while idle < 3:
        worked = [
            claim for lane in lanes if (claim := queue.claim(lane, holder, Batching(batching)))
        ]
        for claim in worked:
            say(claim.lane, claim.run_id, *(row.message for row in claim.messages))
            if not queue.complete(claim, answered(claim)):
                say("LOST", claim.run_id)
        idle = 0 if worked else idle + 1
        if not worked:
            time.sleep(0.01)


def hold_and_wait(agent: str, beating: str) -> None:
    """Claim, say so, wait for a line, then try to complete and say whether it counted."""
    holder = become_holder()
    claim = queue.claim(queue.lane_of(agent), holder)
    assert claim is not None
    say("claimed", claim.run_id)
    wait_for_go()
    say("completed" if queue.complete(claim, answered(claim)) else "refused")


def die_of_poison(agent: str) -> None:
    """Process everything of an agent; the text `poison` kills the process while it holds the lane."""
    holder = become_holder()
    while claim := queue.claim(queue.lane_of(agent), holder, now=clock.now() + 3_600_000):
        if any(row.message == "poison" for row in claim.messages):
            os.kill(os.getpid(), signal.SIGKILL)
        queue.complete(claim, answered(claim))


def wake(count: str) -> None:
    """Wait for rings and say when each was heard."""
    bell = wakeup.hang_up()
    say("ready")
    for _ in range(int(count)):
        assert bell.wait(30), "nobody rang"
        say("heard")
    bell.close()


def emit(count: str, number: str) -> None:
    """Accept messages one by one, as fast as it goes: one event each."""
    say("ready")
    wait_for_go()
    for index in range(int(count)):
        queue.enqueue(submission("x", [f"a{number}"], f"emit_{number}_{index}"))


def process_queue() -> None:
    """Run the real processor until stopped."""
    from django.core.management import call_command

    call_command("process_queue")


def crash_everywhere() -> None:
    """Crash at every step of a scenario; say of each as JSON where it was and what became of it."""
    from tests import crashes

    for crash in crashes.crash_everywhere():
        say(json.dumps(asdict(crash)))
    say("end")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
