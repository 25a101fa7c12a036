"""Dump, prove and restore a PostgreSQL database by PostgreSQL's own programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

from tinyoffice.backups.contents import Contents, Report
from tinyoffice.backups.errors import BackupFailed, DatabaseDamaged, RestoreRefused
from tinyoffice.conf import PostgresConf

# Where Debian keeps the programs that are not on the path.
_ELSEWHERE = Path("/usr/lib/postgresql")
_LOOK_EVERY = 0.2
_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend'
"""


def copy(server: PostgresConf, draft: Path, report: Report) -> Contents:
    """Dump a database that is in use into a draft, count the same snapshot, and prove the dump."""
    dump = program("pg_dump")
    with _told(server), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot(), pg_database_size(current_database())")
        snapshot, size = cursor.fetchone()
        _run(
            [dump, "--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={draft}"],
            server,
            lambda: report("copying", draft.stat().st_size, int(size)),
        )
        report("checking", 0, None)
        contents = _count(cursor)
    connection.close()
    if missing := sorted(set(contents.rows) - inspect(draft)):
        raise DatabaseDamaged(
            f"The dump of '{server.name}' lacks the tables {', '.join(missing)}. It was removed. "
            "Give this user the right to read every table, and back up again."
        )
    return contents


def inspect(dump: Path) -> set[str]:
    """Read a dump's table of contents and return the tables whose rows it holds."""
    listing = _run([program("pg_restore"), "--list", str(dump)], None, lambda: None)
    return set(re.findall(r"^\d+; \d+ \d+ TABLE DATA \S+ (\S+)", listing, re.MULTILINE))


def alone(server: PostgresConf) -> list[str]:
    """Return the migrations of the present database; refuse while others are connected to it."""
    with _told(server), connection.cursor() as cursor:
        cursor.execute(_OTHERS)
        (others,) = cursor.fetchone()
        migrations = _migrations(cursor)
    connection.close()
    if others:
        raise RestoreRefused(
            f"The database '{server.name}' has {others} other connections, so an office may run on "
            "this machine or another. Stop every office and program that uses it, then restore."
        )
    return migrations


def restore(server: PostgresConf, dump: Path, report: Report) -> None:
    """Replace the database's tables by the dump's, in one transaction: all or none."""
    options = ["--clean", "--if-exists", "--single-transaction", "--exit-on-error", "--no-owner"]
    _run(
        [program("pg_restore"), *options, f"--dbname={server.name}", str(dump)],
        server,
        lambda: report("restoring", 0, None),
    )


def program(name: str) -> str:
    """Return where a program of PostgreSQL is; refuse with what to install if it is nowhere."""
    elsewhere = sorted(
        _ELSEWHERE.glob(f"*/bin/{name}"), key=lambda file: file.parts[-3].zfill(4), reverse=True
    )
    if found := shutil.which(name) or next(map(str, elsewhere), None):
        return found
    raise BackupFailed(
        f"The database is PostgreSQL, whose backups need its program '{name}', and that was not "
        "found on the PATH. Install the client programs (Debian: postgresql-client; macOS: "
        "libpq), no older than the server, and try again."
    )


@contextmanager
def _told(server: PostgresConf) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        found = str(error).strip()
        raise BackupFailed(
            f"The PostgreSQL database '{server.name}' cannot be used: {found}. Nothing was changed or "
            "left behind. Check that the server runs and that DATABASE_URL is right."
        ) from error


def _count(cursor: CursorWrapper) -> Contents:
    rows = {}
    for table in connection.introspection.table_names(cursor):
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608
        (rows[table],) = cursor.fetchone()
    cursor.execute("SHOW server_version")
    (version,) = cursor.fetchone()
    migrations = _migrations(cursor)
    if not migrations:
        raise DatabaseDamaged(
            f"The database '{connection.settings_dict['NAME']}' holds no TinyOffice tables, so there "
            "is nothing to back up. Check DATABASE_URL, or start the office once."
        )
    return Contents(database=f"PostgreSQL {version}", migrations=migrations, rows=rows)


def _migrations(cursor: CursorWrapper) -> list[str]:
    if "django_migrations" not in connection.introspection.table_names(cursor):
        return []
    cursor.execute("SELECT app, name FROM django_migrations")
    return [f"{app}.{name}" for app, name in cursor.fetchall()]


def _run(command: list[str], server: PostgresConf | None, tell: Callable[[], None]) -> str:
    """Run a program to its end, telling how it goes; return what it printed."""
    with subprocess.Popen(  # noqa: S603  a program of PostgreSQL, with names from the settings
        command,
        env=os.environ | (_reached_by(server) if server else {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            printed, said = _follow(process, tell)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        found = said.strip() or f"it ended with status {process.returncode}"
        raise BackupFailed(
            f"'{Path(command[0]).name}' could not do its part: {found}. Nothing was changed or left "
            "behind. Mend what it names, and try again."
        )
    return printed


def _follow(process: subprocess.Popen[str], tell: Callable[[], None]) -> tuple[str, str]:
    while True:
        tell()
        try:
            return process.communicate(timeout=_LOOK_EVERY)
        except subprocess.TimeoutExpired:
            continue


def _reached_by(server: PostgresConf) -> dict[str, str]:
    # By the environment, which other users cannot read: never a password on a command line.
    given = {
        "PGDATABASE": server.name,
        "PGUSER": server.user,
        "PGPASSWORD": server.password,
        "PGHOST": server.host,
        "PGPORT": server.port,
    }
    return {name: value for name, value in given.items() if value}
