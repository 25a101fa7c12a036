"""What can go wrong with backups; the whole tree is drawn in tinyoffice.errors."""

from __future__ import annotations

from tinyoffice.errors import TinyOfficeError


class BackupFailed(TinyOfficeError):
    """No copy could be made or proven; none was left behind."""

    code = "backup_failed"


class DatabaseDamaged(BackupFailed):
    """What was to be copied is not whole itself."""

    code = "database_damaged"


class BackupUnusable(TinyOfficeError):
    """A backup is missing, damaged or not for this office; nothing was changed."""

    code = "backup_unusable"


class RestoreRefused(TinyOfficeError):
    """The database may not be replaced now; nothing was changed."""

    code = "restore_refused"
