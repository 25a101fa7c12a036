"""`manage.py logs`: read what the processes of the office wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tinyoffice import log_files
from tinyoffice.log_files import LogFile
from tinyoffice.supervision import LOGS


class Command(BaseCommand):
    """Show the last lines of one log or of all, and follow them."""

    help = (
        "Show the last lines of a log: queue (the processor), web, scheduler, spark (the fetch of the "
        "Spark part), supervisor (starts and restarts) or all of them. With --follow, go on as lines "
        "are added; Ctrl-C ends it. The files are in logs/ in the office's home."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take a log, a number of lines, and whether to go on."""
        parser.add_argument(
            "log", nargs="?", choices=[*LOGS, "all"], default="all", help="which (default: all)"
        )
        parser.add_argument("--lines", type=int, default=50, help="how many of each (default: 50)")
        parser.add_argument("--follow", action="store_true", help="go on as lines are added")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, and follow if asked to."""
        if options["lines"] < 0:
            raise CommandError(f"--lines is {options['lines']}; give a whole number, 0 or more.")
        directory = settings.TINYOFFICE.home / "logs"
        names = LOGS if options["log"] == "all" else (options["log"],)
        logs = [LogFile(directory / f"{name}.log") for name in names]
        if not options["follow"] and not any(log.path.exists() for log in logs):
            raise CommandError(
                f"There is no such log in '{directory}' yet. Start the office with `script/server`, "
                "or set TINYAGI_HOME to its home."
            )
        last = ((log, line) for log in logs for line in log.last(options["lines"]))
        self._show(last, named=len(logs) > 1)
        if options["follow"]:
            with suppress(KeyboardInterrupt):
                self._show(log_files.follow(logs), named=len(logs) > 1)

    def _show(self, lines: Iterator[tuple[LogFile, str]], *, named: bool) -> None:
        for log, line in lines:
            self.stdout.write(f"{log.path.stem}: {line}" if named else line)
            self.stdout.flush()
