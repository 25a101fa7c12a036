"""Which backups there are: a proven copy with a manifest beside it, both of mode 0600.

The manifest is put there first and the copy last, so a copy that can be seen is whole and proven.
Everything before that is a draft, which counts for nothing and is removed by the next backup.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from tinyoffice.backups.errors import BackupFailed, BackupUnusable
from tinyoffice.conf import Conf

SQLITE, POSTGRESQL = ".db", ".dump"
REGULAR, BEFORE_RESTORE = "tinyagi", "before-restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds, as it was counted and proven when it was made."""

    made_at: str
    office: str  # the home's own name, so that offices with one directory leave each other's alone
    version: str
    database: str
    size: int
    sha256: str
    migrations: list[str]
    rows: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A proven copy."""

    file: Path
    manifest: Manifest


def directory_of(home: Path) -> Path:
    """Return where a home's backups are kept unless somebody says otherwise."""
    return home / "backups"


def suffix_of(conf: Conf) -> str:
    """Return how this office's backups end."""
    return SQLITE if conf.postgres is None else POSTGRESQL


def latest_verified(home: Path) -> Backup | None:
    """Return the newest backup in home that was proven and still has its size, or None.

    The bytes are read again only by a restore: a copy may be large and this is asked often.
    """
    found = kept(directory_of(home), suffix_of(settings.TINYOFFICE))
    return found[0] if found else None


def kept(directory: Path, suffix: str) -> list[Backup]:
    """Return the regular backups in a directory, the newest first."""
    found = [read(file) for file in directory.glob(f"{REGULAR}-*{suffix}")]
    return sorted(
        (backup for backup in found if backup is not None),
        key=lambda backup: backup.manifest.made_at,
        reverse=True,
    )


def find(conf: Conf, name: str) -> Backup:
    """Return the backup somebody asked for: `latest`, a path, or a file's name in home's backups."""
    directory = directory_of(conf.home)
    if name == "latest":
        if (latest := latest_verified(conf.home)) is None:
            raise BackupUnusable(
                f"There is no verified backup in '{directory}'. Name the file of one that is kept "
                "elsewhere, as in `manage.py restore_backup FILE`."
            )
        return latest
    file = Path(name) if Path(name).exists() else directory / name
    if file.suffix != suffix_of(conf):
        raise BackupUnusable(
            f"'{name}' is no backup for this office: its database is "
            f"{'SQLite' if conf.postgres is None else 'PostgreSQL'}, whose backups end in "
            f"'{suffix_of(conf)}'. Choose another file, or set DATABASE_URL as it was for this one."
        )
    if (backup := read(file)) is None:
        raise BackupUnusable(
            f"'{name}' was not found as a whole backup: the file and its manifest "
            f"'{file.with_suffix('.json').name}' must be together, with the size the manifest says. "
            f"Copy both here, or choose one of those in '{directory}'."
        )
    return backup


def read(file: Path) -> Backup | None:
    """Return the backup in a file, or None if it has no manifest or not the manifest's size."""
    try:
        manifest = Manifest(**json.loads(file.with_suffix(".json").read_text()))
        whole = file.stat().st_size == manifest.size
    except (OSError, ValueError, TypeError):
        return None
    return Backup(file=file, manifest=manifest) if whole else None


def new_name(directory: Path, prefix: str, suffix: str) -> tuple[Path, str]:
    """Return a file for a new backup, and the time in its name as the manifest has it."""
    now = datetime.now(UTC)
    return directory / f"{prefix}-{now:%Y%m%dT%H%M%S.%fZ}{suffix}", f"{now:%Y-%m-%dT%H:%M:%S.%fZ}"


def draft_of(file: Path, office: str) -> Path:
    """Make an empty file for the owner's eyes only, to be filled and then published."""
    draft = file.with_name(f"{_drafts(office)}{file.name}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return draft


def publish(draft: Path, file: Path, manifest: Manifest) -> Backup:
    """Make a proven draft a backup, on disk to the last byte before its name appears."""
    sync(draft)
    note = draft_of(file.with_suffix(".json"), manifest.office)
    note.write_text(json.dumps(asdict(manifest), indent=2) + "\n")
    sync(note)
    note.rename(file.with_suffix(".json"))
    draft.rename(file)
    sync(file.parent)
    return Backup(file=file, manifest=manifest)


def rotate(directory: Path, suffix: str, *, office: str, keep: int) -> None:
    """Remove this office's oldest backups until `keep` are left; other offices' stay."""
    own = [backup for backup in kept(directory, suffix) if backup.manifest.office == office]
    for backup in own[max(keep, 1) :]:
        backup.file.unlink(missing_ok=True)
        backup.file.with_suffix(".json").unlink(missing_ok=True)


def tidy(directory: Path, office: str) -> None:
    """Remove what unfinished backups of this office left; only while no other is being made."""
    for leftover in directory.glob(f"{_drafts(office)}*"):
        leftover.unlink(missing_ok=True)
    for note in directory.glob("*.json"):
        copies = (note.with_suffix(suffix) for suffix in (SQLITE, POSTGRESQL))
        if not any(copy.exists() for copy in copies) and _office_in(note) == office:
            note.unlink(missing_ok=True)


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Keep every other backup and restore of this home out; refuse if one is at work."""
    lock = os.open(directory_of(home) / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        _lock(lock, home)
        yield
    finally:
        os.close(lock)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file that no database connection has open."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Have a file's bytes, or a directory's names, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(lock: int, home: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BackupFailed(
            f"A backup or a restore of '{home}' is at work already. Wait until it has ended, "
            "and try again."
        ) from error


def _drafts(office: str) -> str:
    return f".draft-{office}-"


def _office_in(note: Path) -> str | None:
    try:
        return str(json.loads(note.read_text())["office"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
