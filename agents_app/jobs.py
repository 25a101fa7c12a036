"""Jobs as child processes: each is one of the office's own commands, kept by a shepherd."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from agents_app.marks import mark_of
from agents_app.subprocesses import Limits, Order, run
from queue_app.models import Job

MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
# Which job runs which command; nothing else is ever started by a row.
COMMANDS = {"backup": "backup", "maintain": "maintain"}
LIMITS = Limits(wall=24 * 3600.0, silence=24 * 3600.0)
# By which a command finds the row it reports its progress to.
VARIABLE = "TINYAGI_JOB_ID"


async def do(job: Job) -> str:
    """Run the job's command to its end; return what went wrong, or nothing."""
    command = COMMANDS.get(job.name)
    if command is None:
        return f"There is no job '{job.name}'; there are: {', '.join(COMMANDS)}."
    arguments = json.loads(job.arguments or "[]")
    order = Order(
        argv=(sys.executable, str(MANAGE), command, *arguments),
        cwd=MANAGE.parent,
        env={**os.environ, VARIABLE: str(job.pk)},
        mark=mark_of(job.run_id or 0),
        limits=LIMITS,
    )
    ended = await run(order, lambda line: None)
    return f"{ended.message} {ended.errors[-1000:]}".strip() if ended.message else ""
