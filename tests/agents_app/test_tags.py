"""The bracket parser, against examples, properties and hostile sizes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app import tags


def direct(text: str) -> list[tuple[str, str]]:
    return [(",".join(tag.names), tag.text) for tag in tags.parse(text).direct]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ @otto: x]", []),
        ("[@: x]", []),
        ("[@ \n: x]", []),
        ("[@ otto : x ]", [("otto", "x")]),
        ("[@a,,b,: x]", [("a,b", "x")]),
        ("[@otto [1]: x]", []),
        ("[@otto: ]", [("otto", "")]),
        ("[@otto: a:b]", [("otto", "a:b")]),
        ("]]] [@otto: x] ]]", [("otto", "x")]),
        ("[[@otto: x]]", [("otto", "x")]),
        ("[[[ [@otto: x]", [("otto", "x")]),
        ("[@a: [@b: [@c: x]", [("c", "x")]),
        ("[@otto: two\nlines\n\nand more]", [("otto", "two\nlines\n\nand more")]),
        ("say “[@otto: x]”", [("otto", "x")]),
        ("[@o\u200btto\u200b: x\u200by]", [("otto", "xy")]),
        ("[@ÄRGER: 你好 😀 [é]]", [("ärger", "你好 😀 [é]")]),
    ],
)
def test_where_a_tag_begins_and_ends(text: str, expected: list[tuple[str, str]]) -> None:
    assert direct(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`[@otto: x]`", []),
        ("``a ` [@otto: x]`` [@pia: y]", [("pia", "y")]),
        ("` [@otto: x] ``", [("otto", "x")]),
        ("one ` tick\n\n[@otto: x] two `", [("otto", "x")]),
        ("- one ` tick\n- [@otto: x] two `", [("otto", "x")]),
        ("```\n[@otto: x]\n```\n[@pia: y]", [("pia", "y")]),
        ("~~~ text\n[@otto: x]\n```\n~~~\n[@pia: y]", [("pia", "y")]),
        ("````\n```\n[@otto: x]\n````\n[@pia: y]", [("pia", "y")]),
        ("1. ```js\n   [@otto: x]\n   ```\n[@pia: y]", [("pia", "y")]),
        ("```\r\n[@otto: x]\r\n```\r\n[@pia: y]", [("pia", "y")]),
        ("```[@otto: x]``` [@pia: y]", [("pia", "y")]),
        ("```\n[@otto: never ends]", []),
        ("> [@otto: x]\n[@pia: y]", [("pia", "y")]),
        ("  > > [@otto: x]", []),
        ("a > b [@otto: x]", [("otto", "x")]),
        ("[@otto: match `[^]]+` please]", [("otto", "match `[^]]+` please")]),
        ("[@otto: run\n```\nif [ a\n```\nnow]", [("otto", "run\n```\nif [ a\n```\nnow")]),
        ("[@otto: run\n```\nx\n```]", [("otto", "run\n```\nx\n```")]),
        ("[@otto: see\n> please]", [("otto", "see\n> please")]),
        ("[@otto: `[@pia: y]`]", [("otto", "`[@pia: y]`")]),
    ],
)
def test_code_and_quotes_are_text(text: str, expected: list[tuple[str, str]]) -> None:
    assert direct(text) == expected


def test_kinds_do_not_hide_each_other() -> None:
    found = tags.parse("[@otto: [#web: a] [send_file: /b[1].png]]")

    assert [tag.text for tag in found.direct] == ["[#web: a] [send_file: /b[1].png]"]
    assert [(tag.names, tag.text) for tag in found.rooms] == [(("web",), "a")]
    assert [tag.text for tag in found.files] == ["/b[1].png"]
    assert found.shared == ""


def test_a_room_tag_names_one_room() -> None:
    (tag,) = tags.parse("[#Web, ops: a]").rooms

    assert tag.names == ("web, ops",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain [1] text", "plain [1] text"),
        ("[@otto: build it]", "@mia → @otto: build it"),
        ("[@Otto,pia:  status? ]", "@mia → @otto, @pia: status?"),
        ("Now: [@otto: a] [@pia: b] thanks", "Now: @mia → @otto: a\n@mia → @pia: b\nthanks"),
        ("- [@otto: a]\n- [@pia: b].", "- @mia → @otto: a\n- @mia → @pia: b."),
        ("[#web: see [1] and [@otto: hi]]", "@mia → #web: see [1] and @mia → @otto: hi"),
        ("[@otto: tell [@pia: hi] now]", "@mia → @otto: tell [@pia: hi] now"),
        ("[@otto: ] `[@otto: x]`", "[@otto: ] `[@otto: x]`"),
        ("[@otto: open", "[@otto: open"),
        ("([@otto: a])", "(@mia → @otto: a)"),
    ],
)
def test_people_read_who_told_what_to_whom(text: str, expected: str) -> None:
    assert tags.readable(text, "mia") == expected


WORDS = st.text(
    st.characters(exclude_characters="[]`\u200b", exclude_categories=["Cs", "Cc"]), max_size=20
).map(lambda text: text.replace(">", ""))
BODIES = st.recursive(
    WORDS, lambda inner: st.lists(inner.map(lambda text: f"[{text}]") | WORDS).map("".join)
)
NAMES = st.lists(st.text("abcäö😀_-", min_size=1, max_size=6), min_size=1, max_size=4)
ANYTHING = st.lists(
    st.sampled_from(
        [
            "[@a: ",
            "[#b: ",
            "[@",
            "[",
            "]",
            "`",
            "``",
            "```\n",
            "~~~",
            "\n",
            "> ",
            "x",
            "😀",
            "\u200b",
        ]
    )
).map("".join)


@given(before=WORDS, names=NAMES, body=BODIES, after=WORDS)
def test_a_tag_is_found_again(before: str, names: list[str], body: str, after: str) -> None:
    found = tags.parse(f"x{before}[@{','.join(names)}:{body}]{after}")

    (tag,) = found.direct
    assert tag.names == tuple(name.lower() for name in names)
    assert tag.text == body.strip()
    assert found.shared == f"x{before}{after}".strip()


@given(body=BODIES, depth=st.integers(1, 50))
def test_what_is_nested_is_text(body: str, depth: int) -> None:
    text = "[@a:" * depth + body + "]" * depth

    (tag,) = tags.parse(text).direct

    assert (tag.start, tag.end) == (0, len(text))


@given(opened=st.integers(1, 50), body=BODIES)
def test_an_unclosed_tag_costs_nobody_else(opened: int, body: str) -> None:
    found = tags.parse("[@a: " * opened + f"[@b:{body}]")

    assert [tag.names for tag in found.direct] == [("b",)]


@given(text=ANYTHING)
def test_tags_are_in_order_apart_and_true_to_the_text(text: str) -> None:
    found = tags.parse(text)

    assert found.text == text.replace("\u200b", "")
    for kind in (found.direct, found.rooms):
        ends = [0, *(tag.end for tag in kind)]
        assert all(tag.start >= end for tag, end in zip(kind, ends, strict=False))
        for tag in kind:
            piece = found.text[tag.start : tag.end]
            assert piece.startswith("[" + tag.kind.value)
            assert piece.endswith("]")
            assert tag.text == found.text[tag.body : tag.end - 1].strip()


@given(text=ANYTHING)
def test_fenced_and_quoted_nothing_is_a_tag(text: str) -> None:
    fenced = "`" * 9 + "\n" + text.replace("`", "") + "\n" + "`" * 9
    quoted = "\n".join(f"> {line}" for line in text.split("\n"))

    assert not tags.parse(fenced).direct
    assert not tags.parse(quoted).direct


@given(text=ANYTHING)
def test_text_without_tags_reads_as_it_is(text: str) -> None:
    found = tags.parse(text)
    if not found.direct and not found.rooms:
        assert tags.readable(text, "mia") == found.text


def steps(act: Callable[[], Any]) -> int:
    """Return how many lines of the parser are run, which no busy machine changes."""
    counted = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal counted
        if frame.f_code.co_filename != tags.__file__:
            return None
        counted += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return counted


HOSTILE = [
    "[",
    "]",
    "[@a: ",
    "[@a",
    "[@a:[",
    "[@a: x]",
    "`[",
    "` ``",
    "> [@a: x]\n",
    "```\n",
    "- `\n",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hundred_kilobytes_take_a_hundred_times_the_steps_of_one(unit: str) -> None:
    small, large = (unit * (size // len(unit)) for size in (1_000, 100_000))

    ratio = steps(lambda: tags.readable(large, "mia")) / steps(lambda: tags.readable(small, "mia"))

    assert ratio < 120


def processor_time(text: str) -> float:
    """Return the least of three: what the parser needs, whatever else the machine does."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        tags.parse(text)
        taken.append(time.process_time() - began)
    return min(taken)


def filled(unit: str, size: int) -> str:
    if unit == "nested":
        return "[@a:" * (size // 5) + "]" * (size // 5)
    return unit * (size // len(unit))


@pytest.mark.parametrize("unit", [*HOSTILE, "nested"])
def test_ten_times_the_text_takes_about_ten_times_as_long(unit: str) -> None:
    """Copies are not steps: only time shows a slice of the rest at each bracket."""
    small, large = (processor_time(filled(unit, size)) for size in (100_000, 1_000_000))

    # A hundred times as long is what a slice at each bracket would cost; a busy machine adds its noise.
    assert large < 40 * max(small, 0.005)
