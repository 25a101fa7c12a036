"""Where the office's sockets live: a private directory whose path is short enough for a socket.

A unix socket's path may have 104 bytes on macOS and 108 on Linux, and home can be anywhere, so the
sockets live under a name made from the user and a digest of home.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from tinyoffice.errors import TinyOfficeError

LONGEST_SOCKET_PATH = 103
# What is left for a socket's own name under the directory.
_ROOM_FOR_NAME = 32


class RuntimeUnsafe(TinyOfficeError):
    """The directory for sockets is not ours alone."""

    code = "runtime_unsafe"


def runtime_directory(home: Path) -> Path:
    """Return the directory for this home's sockets, made with mode 0700 and owned by this user."""
    digest = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]
    directory = _parent() / f"tinyoffice-{os.getuid()}-{digest}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        _refuse_unsafe(directory)
    except OSError as error:
        raise RuntimeUnsafe(
            f"The directory '{directory}' for the office's sockets cannot be used: "
            f"{error.strerror}. Set TMPDIR to a directory that this user can write to."
        ) from error
    return directory


def _parent() -> Path:
    for name in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()):
        if name and _is_usable(Path(name)):
            return Path(name)
    return Path("/tmp")  # noqa: S108  the directory inside it is checked for owner and mode


def _is_usable(directory: Path) -> bool:
    longest = len(os.fsencode(directory)) + len("/tinyoffice--") + 10 + 12 + _ROOM_FOR_NAME
    return (
        directory.is_absolute()
        and longest <= LONGEST_SOCKET_PATH
        and directory.is_dir()
        and os.access(directory, os.W_OK | os.X_OK)
    )


def _refuse_unsafe(directory: Path) -> None:
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise RuntimeUnsafe(
            f"'{directory}' is to hold the office's sockets, but it is a link or belongs to "
            f"user {found.st_uid}. Somebody else made it; remove it, or set TMPDIR to another directory."
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        directory.chmod(0o700)
