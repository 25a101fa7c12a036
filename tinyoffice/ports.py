"""Whether the office can listen on its port, and if not, which program is in the way."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

_LISTENING = "0A"


def refusal(host: str, port: int) -> str | None:
    """Return why the office cannot listen there and what to do, or None if it can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError as error:
            return _sentence(host, port, error)
    return None


def _sentence(host: str, port: int, error: OSError) -> str:
    other = port + 1 if 1024 <= port < 65_535 else 3778
    choose = f"choose another port, as in TINYAGI_API_PORT={other}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by {_holder(port)}. "
            f"End that program, or {choose}, and start again."
        )
    if error.errno == errno.EACCES:
        return f"This user may not listen on port {port}: {error.strerror}. Please {choose}."
    return (
        f"The office cannot listen on {host} port {port}: {error.strerror}. Set TINYAGI_API_HOST "
        f"to an address of this machine (127.0.0.1 by default), or {choose}."
    )


def _holder(port: int) -> str:
    sockets = set(_listening_sockets(port))
    for process in Path("/proc").glob("[0-9]*"):
        if sockets & set(_open_files(process)):
            return f"'{_command(process)}' (process {process.name})"
    return "another program (which one cannot be seen from here)"


def _listening_sockets(port: int) -> Iterator[str]:
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                yield f"socket:[{columns[9]}]"


def _open_files(process: Path) -> Iterator[str]:
    try:
        for entry in os.scandir(process / "fd"):
            yield os.readlink(entry)
    except OSError:
        return  # it has ended, or belongs to another user


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    return " ".join(word.decode(errors="replace") for word in words if word)[:120]
