from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from queue_app import batches
from queue_app.batches import Batching


@dataclass(frozen=True)
class Waiting:
    """A message in line, as far as the rules look at it."""

    message: str
    person: str = "owner"
    channel: str = "telegram"
    sender: str = "alice"
    thread: str | None = None
    retry_count: int = 0

    @property
    def address(self) -> tuple[str, str, str | None]:
        return (self.channel, self.sender, self.thread)


def taken(line: list[Waiting], batching: Batching = Batching.TOGETHER) -> str:
    return "".join(row.message for row in batches.take(line, batching))


A, B, C = Waiting("a"), Waiting("b"), Waiting("c")
STRANGER = Waiting("s", person="bob", sender="bob")
ON_DISCORD = Waiting("d", channel="discord")
IN_THREAD = Waiting("t", thread="7")
RETRIED = Waiting("r", retry_count=1)
POST, NEXT_POST = Waiting("p", channel="chatroom"), Waiting("q", channel="chatroom")
HEARTBEAT = Waiting("h", person="heartbeat", channel="heartbeat", sender="heartbeat")

TOGETHER, BY_SENDER, ONE = Batching.TOGETHER, Batching.BY_SENDER, Batching.ONE


@pytest.mark.parametrize(
    ("batching", "line", "expected"),
    [
        pytest.param(TOGETHER, [], "", id="an empty line gives an empty batch"),
        pytest.param(TOGETHER, [A, B, C], "abc", id="one person's messages go together"),
        pytest.param(TOGETHER, [A, ON_DISCORD, IN_THREAD], "adt", id="from wherever they wrote"),
        pytest.param(TOGETHER, [A, STRANGER, B], "a", id="nobody is overtaken"),
        pytest.param(TOGETHER, [STRANGER, A, B], "s", id="two people are never merged"),
        pytest.param(TOGETHER, [A, HEARTBEAT], "a", id="a heartbeat never joins a person"),
        pytest.param(TOGETHER, [HEARTBEAT, A], "h", id="nor a person a heartbeat"),
        pytest.param(TOGETHER, [A, RETRIED, B], "a", id="what failed before joins nobody"),
        pytest.param(TOGETHER, [RETRIED, A, B], "r", id="and is joined by nobody"),
        pytest.param(BY_SENDER, [A, B, ON_DISCORD, C], "ab", id="by_sender keeps to one channel"),
        pytest.param(BY_SENDER, [A, IN_THREAD], "a", id="by_sender keeps to one thread"),
        pytest.param(BY_SENDER, [A, STRANGER], "a", id="by_sender keeps to one sender"),
        pytest.param(BY_SENDER, [RETRIED, A], "r", id="by_sender runs a retried one alone"),
        pytest.param(ONE, [A, B, C], "a", id="one takes one"),
        pytest.param(ONE, [POST, NEXT_POST, A], "pq", id="one takes neighbouring room posts"),
        pytest.param(ONE, [A, POST, NEXT_POST], "a", id="a post does not join a message in one"),
        pytest.param(ONE, [POST, A, NEXT_POST], "p", id="only neighbours are taken in one"),
    ],
)
def test_a_batch_is_the_head_of_the_line_and_its_direct_company(
    batching: Batching, line: list[Waiting], expected: str
) -> None:
    assert taken(line, batching) == expected


@pytest.mark.parametrize("batching", Batching)
def test_the_posts_of_two_people_in_one_room_are_never_merged(batching: Batching) -> None:
    mine = Waiting("m", channel="chatroom", person="owner")
    yours = Waiting("y", channel="chatroom", person="bob")

    assert taken([mine, yours], batching) == "m"


def test_a_batch_has_fifty_messages_at_most() -> None:
    line = [Waiting("x")] * 51

    assert len(batches.take(line, TOGETHER)) == 50


def test_a_batch_has_two_hundred_thousand_bytes_at_most() -> None:
    half = Waiting("ä" * 50_000)

    assert len(batches.take([half, half], TOGETHER)) == 2
    assert len(batches.take([half, half, Waiting("x")], TOGETHER)) == 2
    assert len(batches.take([half, Waiting("ä" * 50_000 + "x")], TOGETHER)) == 1


def test_a_small_message_does_not_overtake_a_large_one() -> None:
    line = [A, Waiting("x" * 200_000), B]

    assert taken(line) == "a"


def test_a_message_over_the_limit_runs_alone() -> None:
    line = [Waiting("x" * 1_000_000), A]

    assert len(batches.take(line, TOGETHER)) == 1


def test_no_more_of_the_line_is_read_than_the_batch_needs() -> None:
    def line() -> Iterator[Waiting]:
        yield A
        yield STRANGER
        raise AssertionError("read past the end of the batch")

    assert batches.take(line(), TOGETHER) == [A]


@pytest.mark.parametrize(("batching", "expected"), [(TOGETHER, 50), (BY_SENDER, 50), (ONE, 1)])
def test_the_line_is_read_as_far_as_a_batch_may_reach(batching: Batching, expected: int) -> None:
    assert batches.look_ahead(batching) == expected
