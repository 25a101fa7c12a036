"""One question to one program: start it through the shepherd, read it as it writes, conclude."""

from __future__ import annotations

from agents_app.providers.base import Invocation, Provider, Reply
from agents_app.shepherds import Start, start_fresh
from agents_app.subprocesses import Limits, Run
from queue_app.progress import Report


async def invoke(
    provider: Provider,
    invocation: Invocation,
    limits: Limits,
    report: Report,
    start: Start = start_fresh,
) -> Reply:
    """Return the program's answer; raise RunFailed with the fault; cancelled, leave no process."""
    reader = provider.reader()

    def on_line(line: str) -> None:
        was_final = reader.is_final
        reader.feed(line)
        if reader.is_final and not was_final:
            run.result_seen()
        elif reader.text or reader.tool:
            report(reader.text, reader.tool)

    run = Run(provider.order(invocation, limits), on_line, start=start)
    return reader.conclude(await run.ended())
