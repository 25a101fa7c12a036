"""The built-in provider: no model, no network, deterministic, and scriptable per agent.

It makes the default office answer, and tests, demos and benchmarks run on it. An agent's script is
`extra["rehearsal"]`; docs/providers.md lists what it can say.
"""

from __future__ import annotations

import json
from typing import Any

from agents_app.providers.base import Invocation, Reply
from agents_app.subprocesses import Ended, Limits, Order, Reason
from queue_app import clock
from queue_app.faults import ErrorClass, Fault
from queue_app.results import RunFailed
from queue_app.values import Usage

_TIMED_OUT = {Reason.TIMEOUT, Reason.SILENCE}


class Rehearsal:
    """Starts the rehearsal program with the agent's script."""

    name = "rehearsal"
    module: str | None = "agents_app.rehearsal_program"

    def order(self, invocation: Invocation, limits: Limits) -> Order:
        """Return what to start."""
        script = {
            **invocation.script,
            "agent": invocation.agent,
            "attempt": invocation.attempt,
            "headed": True,
        }
        return Order(
            argv=(f"module:{self.module}", json.dumps(script)),
            cwd=invocation.workspace,
            env=invocation.environment,
            mark=invocation.mark,
            prompt=invocation.prompt.encode(),
            limits=limits,
        )

    def reader(self) -> RehearsalReader:
        """Return a reader for one invocation."""
        return RehearsalReader()


class RehearsalReader:
    """Understands the program's JSON lines; anything else it writes is not an answer."""

    def __init__(self) -> None:
        self.text = ""
        self.tool: str | None = None
        self.is_final = False
        self.result: dict[str, Any] = {}
        self.error: dict[str, Any] = {}

    def feed(self, line: str) -> None:
        """Take the next line."""
        try:
            said = json.loads(line)
        except ValueError:
            return  # not from the script: noise, as real programs make it
        kind = said.get("type") if isinstance(said, dict) else None
        if kind == "progress":
            self.text += said["text"]
        elif kind == "tool":
            self.tool = said["name"]
        elif kind == "error":
            self.error = said
        elif kind == "result":
            self.result, self.is_final = said, True

    def conclude(self, ended: Ended) -> Reply:
        """Return the answer; raise RunFailed with the fault when there is none."""
        if self.is_final:
            usage = Usage(
                provider="rehearsal",
                model="none",
                input_tokens=self.result["input_tokens"],
                output_tokens=self.result["output_tokens"],
                cost=0.0,
            )
            return Reply(text=self.result["text"], usage=usage)
        raise RunFailed(self._fault(ended), Usage(provider="rehearsal", model="none"))

    def _fault(self, ended: Ended) -> Fault:
        if self.error:
            reset_in = self.error.get("reset_in")
            return Fault(
                error_class=ErrorClass(self.error["error_class"]),
                message=self.error["message"],
                reset_at=clock.now() + round(reset_in * 1000) if reset_in is not None else None,
                exit_code=ended.code,
                partial=self.text or None,
            )
        return fault_of(ended, self.text)


def fault_of(ended: Ended, partial: str) -> Fault:
    """Return the fault of a program that ended without an answer."""
    if ended.reason in _TIMED_OUT:
        error_class = ErrorClass.TIMEOUT
    elif ended.reason is Reason.CANNOT_START:
        error_class = ErrorClass.MISSING
    elif ended.code == 0 or ended.reason is Reason.OUTPUT_LIMIT:
        error_class = ErrorClass.OUTPUT
    else:
        error_class = ErrorClass.CRASH
    message = ended.message or "The program ended without an answer."
    if ended.errors.strip():
        message += f" It said: {ended.errors.strip()[-500:]}"
    return Fault(
        error_class=error_class, message=message, exit_code=ended.code, partial=partial or None
    )
