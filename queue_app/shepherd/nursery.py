"""A process that has everything a shepherd needs in memory and forks one for every run.

A fresh interpreter takes longer to start than most of the queue's work on a message; a fork takes a
millisecond. Its orders are two pipes each, the shepherd's input and output, and the run's mark.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from queue_app.shepherd import program, trees

MARK_LENGTH = 24


def main() -> None:
    """Fork a shepherd for every pair of pipes that comes, until the processor is gone."""
    for module in sys.argv[1:]:
        __import__(module)
    door = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended shepherds leave nothing to collect
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the processor's to obey
    while True:
        mark, pipes, _, _ = socket.recv_fds(door, MARK_LENGTH, 2)
        if not mark:
            return
        if os.fork() == 0:
            _become_shepherd(mark, pipes, door)
        for pipe in pipes:
            os.close(pipe)


def _become_shepherd(mark: bytes, pipes: list[int], door: socket.socket) -> None:
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    door.detach()
    for place, pipe in enumerate(pipes):
        os.dup2(pipe, place)
        os.close(pipe)
    trees.wear(mark.decode())
    program.main()
