"""How long does an answer take end to end, and how fast does a line of messages drain?"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.core.management import call_command
from rich.console import Console
from rich.table import Table

from agents_app import intake, staff
from agents_app.intake import Inbound
from agents_app.staff import AgentPlan
from queue_app import holders, queue, wakeup
from queue_app.batches import Batching
from queue_app.models import Message, Response, Run
from tests import factories
from tests.benchmarks.figures import percentile
from tests.benchmarks.logs import keep_aside
from tests.processes import Child

PATIENCE = 120.0
AGENTS = (1, 5, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How one line of messages was worked off."""

    agents: int
    batching: Batching
    messages: int
    runs: int
    seconds: float


def main(arguments: Sequence[str]) -> int:
    """Measure, and show it."""
    parser = argparse.ArgumentParser(prog="script/bench processor", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    options = parser.parse_args(arguments)
    single, line = (30, 100) if options.quick else (200, 600)
    call_command("migrate", verbosity=0)
    with keep_aside():
        floor = [_cycle(number) for number in range(single)]
        child = [_trivial_child() for _ in range(single)]
        with _processor():
            waits = [_answered() for _ in range(single)][single // 10 :]
        drains = [
            _drain(agents, batching, line)
            for batching in (Batching.ONE, Batching.TOGETHER)
            for agents in AGENTS
        ]
    _show(floor, child, waits, drains)
    return 0


def _cycle(number: int) -> float:
    """Time one message through the queue alone, with nobody to answer it."""
    holder = holders.become("bench", settings.TINYOFFICE.home)
    began = time.perf_counter()
    factories.enqueue("hello", f"floor{number}")
    claimed = factories.claim(holder, f"floor{number}")
    queue.complete(claimed, factories.answer(claimed))
    ended = time.perf_counter()
    holder.release()
    return ended - began


def _trivial_child() -> float:
    began = time.perf_counter()
    subprocess.run(["/bin/true"], check=True)
    return time.perf_counter() - began


def _answered() -> float:
    """Time a message from before it is accepted until its answer waits for delivery."""
    _make_agents(1, Batching.TOGETHER)
    bell = wakeup.hang_up()
    began = time.perf_counter()
    accepted = intake.submit(Inbound(source="cli", channel="cli", sender="Bench", text="@a0 hello"))
    _until(lambda: Response.objects.filter(conversation_id=accepted.conversation_id).exists(), bell)
    ended = time.perf_counter()
    bell.close()
    return ended - began


def _drain(agents: int, batching: Batching, messages: int) -> Drain:
    """Time a line that was there before, from its first claim to its last end."""
    _make_agents(agents, batching)
    for number in range(messages):
        text = f"@a{number % agents} hello {number}"
        intake.submit(Inbound(source="cli", channel="cli", sender="Bench", text=text))
    before = Run.objects.count()
    bell = wakeup.hang_up()
    with _processor():
        _until(lambda: not _left(), bell)
    bell.close()
    runs = Run.objects.order_by("-id")[: Run.objects.count() - before]
    began, ended = min(run.started for run in runs), max(run.finished or 0 for run in runs)
    return Drain(
        agents=agents,
        batching=batching,
        messages=messages,
        runs=len(runs),
        seconds=(ended - began) / 1000,
    )


def _left() -> bool:
    return Message.objects.filter(status__in=["pending", "processing"]).exists()


def _make_agents(count: int, batching: Batching) -> None:
    for number in range(count):
        plan = AgentPlan(id=f"a{number}", name=f"Agent {number}", batching=batching)
        staff.put_agent(plan, "bench")


def _until(condition: Callable[[], bool], bell: wakeup.Bell) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"Nothing more happened within {PATIENCE:g} s; the office is stuck.")
        bell.wait(0.5)


@contextmanager
def _processor() -> Iterator[None]:
    with Child("process_queue", log=subprocess.DEVNULL) as child:
        yield
        child.process.terminate()
        child.process.wait(PATIENCE)


def _show(
    floor: Sequence[float], child: Sequence[float], waits: Sequence[float], drains: Sequence[Drain]
) -> None:
    console = Console()
    cycle, start = statistics.median(floor), statistics.median(child)
    alone = Table("what", "p50 ms", "p95 ms", "of queue + child")
    for name, values in (
        ("queue cycle alone", floor),
        ("start of /bin/true", child),
        ("end to end", waits),
    ):
        middle = statistics.median(values)
        alone.add_row(
            name,
            f"{middle * 1000:.2f}",
            f"{percentile(values, 0.95) * 1000:.2f}",
            f"{middle / (cycle + start):.1f}",
        )
    console.print(alone)
    lines = Table("agents", "batching", "messages", "runs", "messages/s", "runs/s")
    for one in drains:
        lines.add_row(
            str(one.agents),
            one.batching,
            str(one.messages),
            str(one.runs),
            f"{one.messages / one.seconds:.0f}",
            f"{one.runs / one.seconds:.0f}",
        )
    console.print(lines)
