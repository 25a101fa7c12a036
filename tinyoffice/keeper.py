"""The process that keeps the others: supervisord, which ends when the office itself is gone.

Run as `python -m tinyoffice.keeper CONFIGURATION LOCK LOGS`, by `manage.py office` alone.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys

from supervisor import supervisord

from tinyoffice import parent
from tinyoffice.supervision import FIRST_KEPT_DESCRIPTOR


def main(configuration: str, lock: int, logs: str) -> None:
    """Keep the processes of a configuration, and the office's lock until the last has ended."""
    # The office holds its signals back, and a process starts with its parent's mask.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # Above what supervisord closes, and not handed to the processes it starts.
    fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, FIRST_KEPT_DESCRIPTOR)
    os.close(lock)
    parent.end_with_parent(grace=180.0)
    parent.keep_children()
    # The names of the logs are relative, for supervisord expands a `%` in their path twice.
    os.chdir(logs)
    supervisord.main(["-n", "-c", configuration])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
