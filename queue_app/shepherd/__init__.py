"""A program that starts one run's command, passes its output on, and ends its whole tree.

It lives in a session of its own between the processor and the command. On Linux it adopts every
orphan below it, so it knows when nothing is left, and only then it reports. When the processor is
gone, even by SIGKILL, its orders end and the run ends with them. If the shepherd itself is killed,
the command dies with it; what the command had started lives on until `trees.end_run` finds it.

Shepherds are forked by a `nursery`, which every processor keeps; `COMMAND` starts one without it.

Every run pays for its start: nothing here imports what is not built into the interpreter, but for
`ctypes`. With `json`, `signal` and `subprocess` it would take twice as long.
"""

from __future__ import annotations

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Imported, not run as a file: a file that is run is compiled again each time.
_PROGRAM = (
    f"import sys; sys.path.append({_ROOT!r}); from queue_app.shepherd.program import main; main()"
)
COMMAND = (sys.executable, "-I", "-S", "-c", _PROGRAM)
NURSERY = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    f"import sys; sys.path.append({_ROOT!r}); from queue_app.shepherd.nursery import main; main()",
)
