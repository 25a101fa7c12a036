"""The base of every error the office raises on purpose.

TinyOfficeError                      a sentence for people and a stable code for programs
├── BadSetting                       a start-up value that cannot be used        (tinyoffice.conf)
├── ForeignDatabase                  the file holds another product's tables     (tinyoffice.storage)
├── StorageUnusable                  home or database cannot be read or written  (tinyoffice.storage)
├── RuntimeUnsafe                    the sockets' directory is not ours alone   (tinyoffice.runtime)
├── CannotStart                      the office may not or cannot be started     (tinyoffice.office)
├── NotRunning                       no office runs on this home                 (tinyoffice.control)
├── OrderFailed                      the office could not carry an order out     (tinyoffice.control)
├── BackupFailed                     no copy could be made or proven             (tinyoffice.backups)
│   └── DatabaseDamaged              what was to be copied is not whole
├── BackupUnusable                   a backup is missing, damaged or not for us  (tinyoffice.backups)
├── RestoreRefused                   the database may not be replaced now        (tinyoffice.backups)
├── UnknownAgent                     addressed to somebody who is not there      (agents_app.routing)
├── NobodyToAsk                      no agent that the sender may reach          (agents_app.routing)
├── UnknownTeam                      a post to a room that is not there          (agents_app.rooms)
└── QueueError                       an order the queue refuses                  (queue_app.errors)
    ├── BadInput                     a value that is empty, too long or unreadable
    ├── DuplicateMessage             the same thing was sent before
    ├── UnknownMessage               no such row
    ├── UnknownRun                   no such run, or it has ended
    ├── NotPending                   cancel or pick-up of what no longer waits
    └── NotDead                      retry, edit or discard of what is not dead
"""

from __future__ import annotations


class TinyOfficeError(Exception):
    """Something was asked that cannot be done; the text says what, why, and what to do."""

    code = "error"
