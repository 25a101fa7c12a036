"""Put a backup back: only into a closed office, only a proven copy, and with a way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from queue_app import holders
from tinyoffice import presence
from tinyoffice.backups import making, postgresql, shelf, sqlite
from tinyoffice.backups.contents import Report
from tinyoffice.backups.errors import BackupUnusable, DatabaseDamaged, RestoreRefused
from tinyoffice.backups.shelf import Backup
from tinyoffice.conf import Conf, PostgresConf
from tinyoffice.storage import StorageUnusable

# What SQLite keeps beside a file; left there, it would be taken for part of the restored one.
BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was put back, and where that which it replaced is kept, if there was any."""

    backup: Backup
    aside: Path | None


def restore(conf: Conf, backup: Backup, report: Report) -> Restored:
    """Replace the database by a backup, whole or not at all; the present one is kept aside."""
    with shelf.alone(conf.home), _closed_office(conf.home), _told(conf.home):
        _refuse_newer(backup)
        if conf.postgres is None:
            aside = _restore_sqlite(conf, backup, report)
        else:
            aside = _restore_postgresql(conf, conf.postgres, backup, report)
    return Restored(backup=backup, aside=aside)


def _restore_sqlite(conf: Conf, backup: Backup, report: Report) -> Path | None:
    draft = conf.home / ".restore.db"
    try:
        _proven_copy(backup, draft, report)
        aside = _set_aside(conf, report)
        draft.replace(conf.database_file)
        shelf.sync(conf.home)
        return aside
    finally:
        draft.unlink(missing_ok=True)


def _proven_copy(backup: Backup, draft: Path, report: Report) -> None:
    """Copy a backup into a draft and prove the draft, for its bytes are those that will count."""
    report("reading the backup", 0, None)
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as target:
        with backup.file.open("rb") as source:
            shutil.copyfileobj(source, target, 1024 * 1024)
        target.flush()
        os.fsync(target.fileno())
    _refuse_changed(backup, draft)
    try:
        sqlite.inspect(draft, report)
    except (sqlite.NotWhole, sqlite3.Error) as error:
        raise BackupUnusable(
            f"'{backup.file}' could not be proven whole: {error}. The database was left as it is. "
            "Choose another backup."
        ) from error


def _set_aside(conf: Conf, report: Report) -> Path | None:
    """Keep the present database as a backup of its own or, if it is damaged, as the file it is."""
    database = conf.database_file
    if not database.exists():
        _move_beside(database, shelf.new_name(*_aside(conf))[0])
        return None
    try:
        sqlite.leave_wal(database)
        aside = making.write(conf, shelf.directory_of(conf.home), shelf.BEFORE_RESTORE, report).file
    except DatabaseDamaged:
        return _keep_damaged(conf)
    except sqlite3.Error as error:
        if sqlite.is_damage(error):
            return _keep_damaged(conf)
        raise RestoreRefused(
            f"The database '{database}' cannot be had alone: {error}. Another program has it open "
            "or it is not writable: end that program, or mend that. Nothing was changed."
        ) from error
    return aside


def _keep_damaged(conf: Conf) -> Path:
    # A second name, not a move: at no moment is there a home without a database.
    aside, _ = shelf.new_name(*_aside(conf))
    aside.hardlink_to(conf.database_file)
    _move_beside(conf.database_file, aside)
    shelf.sync(aside.parent)
    return aside


def _aside(conf: Conf) -> tuple[Path, str, str]:
    return shelf.directory_of(conf.home), shelf.BEFORE_RESTORE, shelf.SQLITE


def _move_beside(database: Path, aside: Path) -> None:
    for ending in BESIDE:
        file = database.with_name(database.name + ending)
        if file.exists():
            file.rename(aside.with_name(aside.name + ending))


def _restore_postgresql(
    conf: Conf, server: PostgresConf, backup: Backup, report: Report
) -> Path | None:
    present = postgresql.alone(server)
    if extra := sorted(set(present) - set(backup.manifest.migrations)):
        raise BackupUnusable(
            f"The database '{server.name}' has tables of a newer version ({extra[0]}, …) than "
            f"'{backup.file}' (version {backup.manifest.version}), which would stay among the older "
            "ones. Make an empty database and set DATABASE_URL to it, then restore."
        )
    report("reading the backup", 0, None)
    _refuse_changed(backup, backup.file)
    postgresql.inspect(backup.file)
    aside = None
    if present:
        aside = making.write(conf, shelf.directory_of(conf.home), shelf.BEFORE_RESTORE, report).file
    postgresql.restore(server, backup.file, report)
    return aside


def _refuse_changed(backup: Backup, copy: Path) -> None:
    if shelf.digest(copy) != backup.manifest.sha256:
        raise BackupUnusable(
            f"'{backup.file}' is damaged: it does not have the SHA-256 its manifest says "
            f"({backup.manifest.sha256[:12]}…). The database was left as it is. "
            "Choose another backup."
        )


def _refuse_newer(backup: Backup) -> None:
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if unknown := sorted(set(backup.manifest.migrations) - known):
        raise BackupUnusable(
            f"'{backup.file}' was made by version {backup.manifest.version}, which has a migration "
            f"this one does not know ('{unknown[0]}'). Install that version or a newer one, "
            "then restore."
        )


@contextmanager
def _closed_office(home: Path) -> Iterator[None]:
    """Hold the office's own lock, so that none is open and none opens meanwhile."""
    if (lock := presence.take(home)) is None:
        raise RestoreRefused(
            f"An office runs on '{home}' (process {presence.process_id(home)}), and its database "
            "cannot be replaced under it. Stop it with `manage.py stop`, then restore."
        )
    try:
        if alive := _alive(home):
            raise RestoreRefused(
                f"A process of the office still works on '{home}' ({', '.join(alive)}; the number is "
                "its process id). End it, then restore."
            )
        yield
    finally:
        os.close(lock)


def _alive(home: Path) -> list[str]:
    host = holders.host_of(home)
    names = sorted(file.stem for file in (home / "locks").glob("*.lock"))
    return [name for name in names if not holders.is_gone(f"{host}/{name}", home)]


@contextmanager
def _told(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnusable(
            f"The backup could not be put into '{home}': {error.strerror or error}. The database was "
            "left as it is. Make room, or make home writable for this user, and restore again."
        ) from error
