"""A command's output as whole lines of bounded length; pure."""

from __future__ import annotations

LONGEST_LINE = 1024 * 1024


class Lines:
    """One stream, taken in pieces and given out as whole lines."""

    def __init__(self, kind: bytes) -> None:
        self.kind = kind
        self.parts: list[bytes] = []
        self.kept = 0
        self.length = 0

    def feed(self, data: bytes) -> bytes:
        """Take what was read; return the lines that are whole now."""
        head, newline, rest = data.partition(b"\n")
        self._grow(head)
        if not newline:
            return b""
        first = self.finish()
        body, newline, tail = rest.rpartition(b"\n")
        self._grow(tail)
        return first + body + newline

    def finish(self) -> bytes:
        """Return the line begun, ended here; one that is too long is cut and says so."""
        if self.length > self.kept:
            self.parts.append(b" [cut: a line of %d bytes]" % self.length)
        line = b"".join(self.parts) + b"\n"
        self.parts, self.kept, self.length = [], 0, 0
        return line

    def _grow(self, data: bytes) -> None:
        part = data[: LONGEST_LINE - self.kept]
        self.parts.append(part)
        self.kept += len(part)
        self.length += len(data)
