"""How the office stands, gathered from supervisord, the database and the environment, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from queue_app import clock, status
from queue_app.status import Depths, Seen, WaitingLane
from spark import availability
from tinyoffice import control
from tinyoffice.conf import Conf
from tinyoffice.control import Kept, NotRunning
from tinyoffice.log_files import LogFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything `manage.py status` tells."""

    running: bool
    url: str
    home: str
    database: str
    at: int
    kept: list[Kept]
    seen: list[Seen]
    queue: Depths
    waiting_lanes: list[WaitingLane]
    spark: str


def gather(conf: Conf) -> Report:
    """Look everywhere once; raise NotRunning where no office has ever been started."""
    if "messages" not in connection.introspection.table_names():
        raise NotRunning(
            f"No office has been started on '{conf.home}' yet. Start one with `script/server`, "
            "or set TINYAGI_HOME to the home of the one you mean."
        )
    now = clock.now()
    kept = _kept(conf)
    return Report(
        running=kept is not None,
        url=conf.web.url,
        home=str(conf.home),
        database=_database(),
        at=now,
        kept=kept or [],
        seen=status.processes(now),
        queue=status.depths(now),
        waiting_lanes=status.waiting_lanes(now),
        spark=_spark(conf),
    )


def _kept(conf: Conf) -> list[Kept] | None:
    try:
        return control.kept(conf.home)
    except NotRunning:
        return None


def _database() -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT sqlite_version(), journal_mode FROM pragma_journal_mode")
            version, journal = cursor.fetchone()
            return f"SQLite {version} ({journal})"
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {cursor.fetchone()[0]}"


def _spark(conf: Conf) -> str:
    state = availability.state()
    if state is not availability.State.MISSING:
        return str(state)
    last = LogFile(conf.home / "logs" / "spark.log").last(1)
    return f"failed: {last[0]}" if last else "missing: run `manage.py fetch_spark`"
