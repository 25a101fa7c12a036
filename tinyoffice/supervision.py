"""Which processes make up the office, and supervisord's configuration that keeps them."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
# supervisord closes the descriptors below this number in itself and its children.
FIRST_KEPT_DESCRIPTOR = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process of the office; the greater its priority, the later it starts and the sooner it stops."""

    name: str
    command: str
    priority: int
    log: str
    stop_seconds: int
    once: bool = False


PROGRAMS = (
    Program(name="web", command="web", priority=10, log="web", stop_seconds=15),
    # A run has 30 s to finish, then its lane is given back.
    Program(name="processor", command="process_queue", priority=20, log="queue", stop_seconds=45),
    # A task of the clock may take 60 s.
    Program(name="scheduler", command="scheduler", priority=30, log="scheduler", stop_seconds=70),
    Program(
        name="spark", command="fetch_spark", priority=40, log="spark", stop_seconds=10, once=True
    ),
)
SUPERVISOR_LOG = "supervisor"
LOGS = (*(program.log for program in PROGRAMS), SUPERVISOR_LOG)


def socket_path(runtime: Path) -> Path:
    """Return where supervisord is spoken to."""
    return runtime / "supervisor.sock"


def configuration(programs: tuple[Program, ...], *, runtime: Path) -> str:
    """Return the text of supervisord's configuration, which is to run in the directory of the logs."""
    return "\n".join([_own_sections(runtime), *(_section(program) for program in programs)])


def write(text: str, runtime: Path) -> Path:
    """Write the configuration for the owner's eyes only; return where."""
    file = runtime / "supervisord.conf"
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(text)
    return file


def _own_sections(runtime: Path) -> str:
    return f"""\
[supervisord]
nodaemon=true
silent=true
identifier=tinyoffice
umask=077
minfds={FIRST_KEPT_DESCRIPTOR}
logfile={SUPERVISOR_LOG}.log
logfile_maxbytes=5MB
logfile_backups=2
pidfile={_literal(runtime / "supervisord.pid")}

[unix_http_server]
file={_literal(socket_path(runtime))}
chmod=0600

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""


def _section(program: Program) -> str:
    # killasgroup without stopasgroup: a process ends its children in its own order; what is left
    # when its time is over is killed with it.
    return f"""\
[program:{program.name}]
command={_literal(shlex.join([sys.executable, str(BASE / "manage.py"), program.command]))}
directory={_literal(BASE)}
priority={program.priority}
autostart=true
{_restarting(program)}
stopsignal=TERM
stopwaitsecs={program.stop_seconds}
stopasgroup=false
killasgroup=true
redirect_stderr=true
stdout_logfile={program.log}.log
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=3
"""


def _restarting(program: Program) -> str:
    if program.once:
        # It tries again by itself and then reports 1; only a death is a reason to start it anew.
        return "startsecs=0\nautorestart=unexpected\nexitcodes=0,1"
    return "startsecs=2\nstartretries=1000\nautorestart=true"


def _literal(value: Path | str) -> str:
    return str(value).replace("%", "%%")
