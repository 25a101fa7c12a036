"""Where shepherds come from: forked by a nursery, or, without one, started as a fresh interpreter."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from queue_app.shepherd import COMMAND, NURSERY, trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Shepherd:
    """A shepherd that waits for its order."""

    control: StreamWriter
    voice: StreamReader
    process: Process | None = None  # to be collected, when it is our own child

    async def collect(self) -> None:
        """Wait until it is gone; its voice has ended before."""
        if self.process:
            await self.process.wait()


Start = Callable[[str], Awaitable[Shepherd]]


async def start_fresh(mark: str) -> Shepherd:
    """Start a shepherd as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=PIPE, stdout=PIPE, env={trees.SHEPHERD_MARK: mark}, start_new_session=True
    )
    return Shepherd(
        control=cast(StreamWriter, process.stdin),
        voice=cast(StreamReader, process.stdout),
        process=process,
    )


class Nursery:
    """Keeps the process that forks shepherds; one that was killed is started anew with the next run."""

    def __init__(self, *modules: str) -> None:
        self.modules = modules
        self.opened: tuple[socket.socket, subprocess.Popen[bytes]] | None = None

    async def start(self, mark: str) -> Shepherd:
        """Have a shepherd forked for the run with this mark."""
        inward, outward = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._door(), [mark.encode()], [inward[0], outward[1]])
        except OSError:
            # Gone between the look and the order; a shepherd of our own does as well.
            for end in (*inward, *outward):
                os.close(end)
            return await start_fresh(mark)
        os.close(inward[0])
        os.close(outward[1])
        return await _connect(inward[1], outward[0])

    def close(self) -> None:
        """Let the nursery end; its shepherds end their runs when their own pipes close."""
        if self.opened:
            door, process = self.opened
            door.close()
            process.wait()
            self.opened = None

    def _door(self) -> socket.socket:
        if self.opened and self.opened[1].poll() is None:
            return self.opened[0]
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own program
                [*NURSERY, *self.modules],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={},
            )
        self.opened = (ours, process)
        return ours


async def _connect(control: int, voice: int) -> Shepherd:
    loop = asyncio.get_running_loop()
    reader = StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(voice, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(control, "wb", 0)
    )
    return Shepherd(control=StreamWriter(transport, protocol, None, loop), voice=reader)
