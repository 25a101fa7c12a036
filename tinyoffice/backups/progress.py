"""Show how far a backup is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from tinyoffice.backups.contents import Report


@contextmanager
def shown_on(stream: TextIO) -> Iterator[Report]:
    """Give a report that draws one bar for the step at hand, gone when the work is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=Console(file=stream), transient=True, disable=not stream.isatty()
    ) as bar:

        def report(step: str, done: int, total: int | None) -> None:
            if [task.description for task in bar.tasks] != [step]:
                for past in bar.task_ids:
                    bar.remove_task(past)
                bar.add_task(step, total=total)
            bar.update(bar.task_ids[0], completed=done)

        yield report
