"""Make a backup: copy, prove, publish, rotate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from queue_app import holders
from tinyoffice.backups import postgresql, shelf, sqlite
from tinyoffice.backups.contents import Contents, Report
from tinyoffice.backups.errors import BackupFailed
from tinyoffice.backups.shelf import Backup, Manifest
from tinyoffice.conf import Conf

CHANGELOG = Path(__file__).resolve().parent.parent.parent / "CHANGELOG.md"
KEEP = 7


def make(conf: Conf, directory: Path, *, keep: int, report: Report) -> Backup:
    """Make a proven backup while the office runs and keep the newest; raise BackupFailed if not."""
    office = holders.host_of(conf.home)
    with shelf.alone(conf.home), _told(directory):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        shelf.tidy(directory, office)
        backup = write(conf, directory, shelf.REGULAR, report)
        shelf.rotate(directory, shelf.suffix_of(conf), office=office, keep=keep)
    return backup


def write(conf: Conf, directory: Path, prefix: str, report: Report) -> Backup:
    """Make one proven copy under a new name, or leave nothing; the caller keeps others out."""
    office = holders.host_of(conf.home)
    file, made_at = shelf.new_name(directory, prefix, shelf.suffix_of(conf))
    with _told(directory):
        try:
            draft = shelf.draft_of(file, office)
            contents = _copy(conf, draft, report)
            report("keeping", 0, None)
            manifest = _manifest(contents, draft, made_at=made_at, office=office)
            return shelf.publish(draft, file, manifest)
        finally:
            shelf.tidy(directory, office)


def _copy(conf: Conf, draft: Path, report: Report) -> Contents:
    if conf.postgres is None:
        return sqlite.copy(conf.database_file, draft, report)
    return postgresql.copy(conf.postgres, draft, report)


def _manifest(contents: Contents, draft: Path, *, made_at: str, office: str) -> Manifest:
    return Manifest(
        made_at=made_at,
        office=office,
        version=_version(CHANGELOG.read_text()),
        database=contents.database,
        size=draft.stat().st_size,
        sha256=shelf.digest(draft),
        migrations=contents.migrations,
        rows=contents.rows,
    )


def _version(changelog: str) -> str:
    found = re.search(r"^## \[?(\d[^\s\]]*)", changelog, re.MULTILINE)
    return found[1] if found else "unknown"


@contextmanager
def _told(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupFailed(
            f"No backup could be made in '{directory}': {error.strerror or error}. Nothing was left "
            "there. Make room or make it writable for this user, or choose another with --to."
        ) from error
