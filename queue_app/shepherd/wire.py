"""What processor and shepherd say to each other; pure.

To the shepherd: two sizes, NUL-separated `name=value` fields, the prompt; later the lines `stop` and
`result`. From it, frames: a line `kind size` and that many bytes. `out` and `err` hold whole lines,
`started` and `end` fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STOP = b"stop\n"
RESULT = b"result\n"
_SIZES = b"%012d%012d"


def encode(order: list[tuple[str, bytes]], prompt: bytes) -> bytes:
    """Return an order as the shepherd reads it; a name may come several times."""
    block = b"\0".join(name.encode() + b"=" + value for name, value in order)
    return _SIZES % (len(block), len(prompt)) + block + prompt


def decode(read: Callable[[int], bytes]) -> tuple[dict[bytes, list[bytes]], bytes]:
    """Read an order and no byte more; return the values by name, and the prompt."""
    sizes = read(len(_SIZES % (0, 0)))
    order: dict[bytes, list[bytes]] = {}
    for field in read(int(sizes[:12])).split(b"\0"):
        name, _, value = field.partition(b"=")
        order.setdefault(name, []).append(value)
    return order, read(int(sizes[12:]))


def frame(kind: bytes, payload: bytes) -> bytes:
    """Return one frame."""
    return b"%s %d\n%s" % (kind, len(payload), payload)


def fields(values: dict[str, bytes]) -> bytes:
    """Return words by name as the payload of a frame."""
    return b" ".join(b"%s=%s" % (name.encode(), value) for name, value in values.items())


def words(payload: bytes) -> dict[str, str]:
    """Return what `fields` wrote."""
    return dict(pair.split("=", 1) for pair in payload.decode().split())


class Frames:
    """Frames put together again from pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Take what was read; give the frames that are whole now."""
        self._buffer += data
        place = 0
        while (header := self._buffer.find(b"\n", place)) >= 0:
            kind, _, size = self._buffer[place:header].decode().partition(" ")
            end = header + 1 + int(size)
            if end > len(self._buffer):
                break
            yield kind, bytes(self._buffer[header + 1 : end])
            place = end
        del self._buffer[:place]
