"""Make a process of the office end itself when the one that keeps it is gone.

A supervisor that is killed cannot stop its children, and they would go on beside those of the next
start. On Linux the kernel tells a child at once; elsewhere, and for a child that does not listen,
a thread looks every second.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time

# Set by the keeper for its children, never by people: a process started by hand outlives its shell.
VARIABLE = "TINYAGI_KEEPER_PID"
_PR_SET_PDEATHSIG = 1
_LOOK_EVERY = 1.0


def end_with_parent(*, grace: float = 40.0, forks_too: bool = False) -> None:
    """Get SIGTERM when the keeper is gone, and SIGKILL after the grace; nothing if unkept.

    With `forks_too`, every process forked from this one ends, at once, when its own parent does.
    """
    expected = os.environ.get(VARIABLE, "")
    if not expected.isdigit():
        return
    _follow(int(expected), signal.SIGTERM, grace)
    if forks_too:
        os.register_at_fork(after_in_child=_follow_forker)


def keep_children() -> None:
    """Name this process as the keeper of the children it starts."""
    os.environ[VARIABLE] = str(os.getpid())


def _follow_forker() -> None:
    _follow(os.getppid(), signal.SIGKILL, 0)


def _follow(parent: int, first: signal.Signals, grace: float) -> None:
    _ask_kernel(first)
    threading.Thread(target=_look, args=(parent, first, grace), name="parent", daemon=True).start()


def _ask_kernel(first: signal.Signals) -> None:
    if sys.platform == "linux":
        # Where the call is not to be had, the thread alone does it.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(first))


def _look(parent: int, first: signal.Signals, grace: float) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os.kill(os.getpid(), first)
    time.sleep(grace)
    os.kill(os.getpid(), signal.SIGKILL)
