"""Speak to the running office: what supervisord says of its processes, and orders to it."""

from __future__ import annotations

import http.client
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import Faults, SupervisorTransport

from tinyoffice import presence
from tinyoffice.errors import TinyOfficeError
from tinyoffice.runtime import runtime_directory
from tinyoffice.supervision import PROGRAMS, socket_path

# The stop of every process one after the other, and a little more.
STOP_SECONDS = sum(program.stop_seconds for program in PROGRAMS) + 10


class NotRunning(TinyOfficeError):
    """The office was to be asked something, and there is none on this home."""

    code = "not_running"


class OrderFailed(TinyOfficeError):
    """The office took an order and could not carry it out."""

    code = "order_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One process as supervisord sees it."""

    name: str
    state: str
    pid: int
    detail: str


def kept(home: Path) -> list[Kept]:
    """Return the processes of the office in the order they start; raise NotRunning if there is none."""
    with _supervisor(home) as supervisor:
        found = {str(info["name"]): info for info in supervisor.getAllProcessInfo()}
    return [
        Kept(
            name=program.name,
            state=str(info["statename"]).lower(),
            pid=int(info["pid"]),
            detail=str(info["description"]),
        )
        for program in PROGRAMS
        if (info := found.get(program.name))
    ]


def restart(home: Path, names: list[str]) -> None:
    """Stop the named processes, the last to start first, and start them again in order."""
    order = [program.name for program in PROGRAMS if program.name in names]
    with _supervisor(home) as supervisor:
        for name in reversed(order):
            _unless(Faults.NOT_RUNNING, supervisor.stopProcess, name)
        for name in order:
            _unless(Faults.ALREADY_STARTED, supervisor.startProcess, name)


def stop(home: Path) -> None:
    """Stop the office in order and return when its last process has ended."""
    with _supervisor(home) as supervisor:
        _unless(Faults.SHUTDOWN_STATE, supervisor.shutdown)
    deadline = time.monotonic() + STOP_SECONDS
    while presence.is_here(home):
        if time.monotonic() > deadline:
            raise OrderFailed(
                f"The office was asked to stop and still runs after {STOP_SECONDS} s "
                f"(process {presence.process_id(home)}). Look at `manage.py status` and end it by hand."
            )
        time.sleep(0.05)


def _unless(fault: int, order: Any, *arguments: str) -> None:
    try:
        order(*arguments)
    except xmlrpc.client.Fault as error:
        if error.faultCode != fault:
            raise


@contextmanager
def _supervisor(home: Path) -> Iterator[Any]:
    transport = SupervisorTransport(None, None, f"unix://{socket_path(runtime_directory(home))}")
    try:
        # The address is only a form; the transport goes to the socket.
        yield xmlrpc.client.ServerProxy("http://localhost", transport=transport).supervisor
    except (OSError, http.client.HTTPException) as error:
        raise NotRunning(
            f"No office runs on '{home}'. Start it with `script/server`, "
            "or set TINYAGI_HOME to the home of the one you mean."
        ) from error
    except xmlrpc.client.Fault as error:
        raise _refused(home, error) from error
    finally:
        transport.close()


def _refused(home: Path, fault: xmlrpc.client.Fault) -> OrderFailed:
    if fault.faultCode == Faults.SHUTDOWN_STATE:
        return OrderFailed(
            f"The office on '{home}' is closing: what runs may finish first. Ask again in a moment."
        )
    return OrderFailed(
        f"supervisord refused: {fault.faultString}. The reason is in the log: `manage.py logs all`."
    )
