"""The way of an answer: one per reply address, as people read it, with the files that may leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents_app import replies
from agents_app.replies import Replies, Shelf
from queue_app import limits
from tests.agents_app.cast import held

WORKSPACE, FILES = Path("/srv/mia"), Path("/home/files")
ON_DISK = {
    Path("/srv/mia/chart.png"): Path("/srv/mia/chart.png"),
    Path("/srv/mia/sub/a[1].png"): Path("/srv/mia/sub/a[1].png"),
    Path("/home/files/report.md"): Path("/home/files/report.md"),
    Path("/srv/mia/link"): Path("/etc/passwd"),
    Path("/srv/mia/../otto/secret"): Path("/srv/otto/secret"),
    Path("/srv/mia-two/near"): Path("/srv/mia-two/near"),
    Path("/etc/passwd"): Path("/etc/passwd"),
}
SHELF = Shelf(roots=(WORKSPACE, FILES), resolve=ON_DISK.get)


def answered(text: str, *batch: object) -> Replies:
    return replies.answers(text, batch or [held(channel="web")], SHELF)  # type: ignore[arg-type]


def said(text: str, channel: str = "web") -> str:
    (response,) = answered(text, held(channel=channel)).responses
    return response.message


def test_every_reply_address_of_the_batch_gets_one_answer() -> None:
    batch = [
        held("one", message_id="telegram_1"),
        held("two", message_id="telegram_2"),
        held("three", message_id="telegram_3", thread="t7"),
        held("four", message_id="web_4", channel="web"),
        held("five", message_id="telegram_5", sender_id=None),
        held("six", message_id="telegram_6", sender_id=None, sender="Bob"),
    ]

    found = answered("done", *batch).responses

    assert [(new.message_id, new.original_message) for new in found] == [
        ("telegram_1", "one"),
        ("telegram_3", "three"),
        ("web_4", "four"),
        ("telegram_5", "five"),
        ("telegram_6", "six"),
    ]
    assert found[1].thread == "t7"


@pytest.mark.parametrize("channel", ["discord", "telegram", "whatsapp"])
def test_people_on_platforms_see_who_wrote(channel: str) -> None:
    assert said("done", channel) == "done\n\n- [mia]"


@pytest.mark.parametrize("channel", ["web", "api", "cli", "heartbeat", "schedule"])
def test_elsewhere_nobody_signs(channel: str) -> None:
    assert said("done", channel) == "done"


def test_signing_is_a_choice() -> None:
    batch = [held(channel="telegram"), held(channel="web")]

    found = replies.answers("done", batch, SHELF, signed=["web"]).responses

    assert [new.message for new in found] == ["done", "done\n\n- [mia]"]


def test_tags_are_made_readable_and_zero_width_spaces_are_gone() -> None:
    assert said("Due Friday.\n[@otto: build\u200b]") == "Due Friday.\n@mia → @otto: build"


@pytest.mark.parametrize("text", ["", "  \n", "\u200b"])
def test_an_answer_without_words_says_so(text: str) -> None:
    assert said(text) == "@mia finished without a written answer."


def test_files_of_workspace_and_office_leave_once_each() -> None:
    text = (
        "Here: [send_file: chart.png] [send_file: /srv/mia/chart.png]\n"
        "[send_file: /home/files/report.md] [send_file: sub/a[1].png]"
    )

    (response,) = answered(text).responses

    assert response.message == "Here:"
    assert list(response.files) == [
        "/srv/mia/chart.png",
        "/home/files/report.md",
        "/srv/mia/sub/a[1].png",
    ]


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "link", "../otto/secret", "/srv/mia-two/near", "no-such-file", "", "a\0b"],
)
def test_what_may_not_leave_or_is_not_there_is_named(path: str) -> None:
    (response,) = answered(f"Look [send_file: {path}]").responses

    assert not response.files
    assert response.message == (
        f"Look\n\n(Not sent: “{limits.legible(path)}”. Only files that exist in the agent's "
        "workspace or in the office's files can leave.)"
    )


def test_file_tags_in_code_are_text() -> None:
    text = "Use `[send_file: chart.png]`"

    (response,) = answered(text).responses

    assert (response.message, list(response.files)) == (text, [])


def test_a_file_alone_is_an_answer() -> None:
    assert said("[send_file: chart.png]") == "@mia sends this."


def test_a_plain_answer_to_a_room_is_shown_there_and_wakes_nobody() -> None:
    batch = [
        held(channel="chatroom", team="web", sender="Alice"),
        held(channel="chatroom", team="web", sender="Bob", sender_id="bob"),
        held(channel="chatroom", team="ops"),
        held(channel="telegram"),
    ]

    found = answered("Fine. [send_file: chart.png] [@otto: go]", *batch)

    shown = "Fine.  @mia → @otto: go\n\n[file: /srv/mia/chart.png]"
    assert [(post.team, post.from_agent, post.message) for post in found.posts] == [
        ("web", "mia", shown),
        ("ops", "mia", shown),
    ]
    assert not any(post.deliveries for post in found.posts)
    assert [new.channel for new in found.responses] == ["telegram"]


@pytest.mark.parametrize("text", ["", "[#web: posted]"])
def test_who_only_posts_or_keeps_silent_shows_nothing_more_in_the_room(text: str) -> None:
    found = answered(text, held(channel="chatroom", team="web"))

    assert found == Replies(responses=(), posts=())


def test_a_post_for_another_room_is_told_in_this_one() -> None:
    (post,) = answered("[#ops: wake up]", held(channel="chatroom", team="web")).posts

    assert post.message == "@mia → #ops: wake up"


def test_output_that_no_row_can_hold_is_cut_and_made_legible() -> None:
    text = said("a\0b \ud83d " + "ä" * 9_000_000)

    assert text.startswith("a\ufffdb \ufffd ä")
    assert text.endswith("ä\n\n(Cut here: the answer is longer than the office keeps.)")


def test_an_answer_that_grows_when_made_readable_still_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replies, "_MOST", 1_000)

    text = said("[@a:x]" * 160)

    assert len(text.encode()) < 1_100
    assert text.endswith("longer than the office keeps.)")
