from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from queue_app import limits, queue
from queue_app.errors import BadInput, UnknownMessage, UnknownRun
from queue_app.faults import ErrorClass
from queue_app.holders import Holder
from queue_app.models import Message, Response, Run
from queue_app.values import NewMessage, NewResponse, Outcome, Submission
from tests import factories

MIB = 1024 * 1024
LONE = "half \ud83d"
NUL = "a\0b"
HUGE = 10**30

AGENT_IDS = [
    "",
    " ",
    ".",
    "..",
    "a/../b",
    "/etc/passwd",
    "a\\b",
    "%2e%2e",
    "a" * 65,
    "a" * 300,
    "Coder",
    "CODER",
    "__proto__",
    "_coder",
    "-rf",
    "co der",
    "coder\n",
    "co.der",
    "cöder",
    "\uff43oder",
    "@coder",
    "agent:coder",
    NUL,
    LONE,
]

IDS = ["", "x" * 201, "a b", "a\nb", "a\tb", "a\u2028b", "\u200bx", " a", NUL, LONE]

NAMES = ["", " \n\t", "x" * 201, "ä" * 101, NUL, LONE]


def refused(build: Callable[[], Any]) -> str:
    """Return the sentence a value is refused with; it can be shown, logged and sent."""
    with pytest.raises(BadInput) as refusal:
        build()
    sentence = str(refusal.value)
    assert sentence.encode().decode() == sentence
    assert "\n" not in sentence
    assert "\0" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 400
    return sentence


def row_with(field: str, value: Any) -> Callable[[], NewMessage]:
    return lambda: factories.new_message(**{field: value})


@pytest.mark.parametrize("value", AGENT_IDS)
def test_an_agent_id_that_could_not_be_a_directory_is_refused(value: str) -> None:
    assert "agent" in refused(row_with("agent", value))


@pytest.mark.parametrize("value", ["a", "0", "coder", "code-review_2", "a" * 64])
def test_a_plain_agent_id_is_accepted(value: str) -> None:
    assert factories.new_message(agent=value).agent == value


@pytest.mark.parametrize("value", IDS)
@pytest.mark.parametrize("field", ["sender_id", "thread", "channel", "from_agent", "team"])
def test_an_id_of_a_message_that_is_not_one_printable_word_is_refused(
    field: str, value: str
) -> None:
    assert refused(row_with(field, value)).startswith(f"'{field}' ")


@pytest.mark.parametrize("value", IDS)
@pytest.mark.parametrize("field", ["message_id", "external_id", "source"])
def test_an_id_of_a_submission_that_is_not_one_printable_word_is_refused(
    field: str, value: str
) -> None:
    keys = {"source": "api", field: value}
    messages = [factories.new_message()]

    assert refused(lambda: Submission(messages=messages, **keys)).startswith(f"'{field}' ")


def test_an_id_may_have_two_hundred_characters_of_any_script() -> None:
    longest = "ж" * 200

    assert factories.submission(message_id=longest, thread=longest).message_id == longest


@pytest.mark.parametrize("value", NAMES)
@pytest.mark.parametrize("field", ["sender", "person"])
def test_a_name_that_is_empty_too_long_or_unreadable_is_refused(field: str, value: str) -> None:
    assert refused(row_with(field, value)).startswith(f"'{field}' ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", "'message' is empty. Write what the agent should read."),
        (" \r\n\t\u3000", "'message' is empty."),
        ("x" * (MIB + 1), f"'message' is {MIB + 1} bytes long; the limit is {MIB}."),
        ("ä" * (MIB // 2) + "x", f"'message' is {MIB + 1} bytes long; the limit is {MIB}."),
        ("x" * 10_000_000, "'message' is 10000000 bytes long;"),
        (NUL, "'message' holds a NUL character, which no database keeps. Remove it."),
        (LONE, "'message' holds half a character at position 5 (a lone surrogate)."),
    ],
    ids=["empty", "blank", "1 MiB + 1", "1 MiB + 1 in umlauts", "10 MB", "NUL", "surrogate"],
)
@pytest.mark.parametrize("field", ["message", "received"])
def test_a_text_that_is_empty_too_long_or_unreadable_is_refused(
    field: str, value: str, expected: str
) -> None:
    given = {"channel": "api", "sender": "A", "message": "x", "agent": "coder", "person": "owner"}

    assert refused(lambda: NewMessage(**given | {field: value})).startswith(expected)


@pytest.mark.parametrize("value", ["", "x" * 4097, NUL, LONE])
def test_a_file_name_that_is_empty_too_long_or_unreadable_is_refused(value: str) -> None:
    assert refused(row_with("files", ["fine.txt", value])).startswith("'files' ")


@pytest.mark.parametrize("value", [-1, -HUGE, 2**63, HUGE])
@pytest.mark.parametrize("field", ["available_at", "hop"])
def test_a_number_that_no_table_holds_is_refused(field: str, value: int) -> None:
    assert refused(row_with(field, value)).startswith(f"'{field}' ")


def test_a_submission_to_nobody_is_refused() -> None:
    sentence = refused(lambda: Submission(source="api", messages=[]))

    assert sentence == "A submission has no messages; address at least one agent."


@pytest.mark.parametrize("value", [NUL, LONE])
@pytest.mark.parametrize(
    "field",
    [
        "message_id",
        "channel",
        "sender",
        "sender_id",
        "original_message",
        "agent",
        "metadata",
        "conversation_id",
        "thread",
        "message",
    ],
)
def test_an_unreadable_text_in_an_answer_is_refused(field: str, value: str) -> None:
    given = {
        "message_id": "api_1",
        "channel": "api",
        "sender": "Alice",
        "message": "done",
        "original_message": "hello",
    }

    assert refused(lambda: NewResponse(**given | {field: value})).startswith(f"'{field}' ")


@pytest.mark.parametrize("value", [NUL, LONE])
def test_an_unreadable_file_name_or_result_of_an_agent_is_refused(value: str) -> None:
    assert refused(lambda: factories.new_response(files=[value])).startswith("'files' ")
    assert refused(lambda: Outcome(text=value)).startswith("'text' ")


@pytest.mark.parametrize("value", [0, -1, -HUGE])
def test_a_limit_below_one_is_refused(value: int) -> None:
    sentence = refused(lambda: limits.page(value))

    assert sentence == f"limit is {value}; it must be a whole number from 1 to 1000."


@pytest.mark.parametrize(
    ("value", "given"), [(1, 1), (999, 999), (1000, 1000), (1001, 1000), (HUGE, 1000)]
)
def test_a_huge_limit_gives_as_many_rows_as_allowed(value: int, given: int) -> None:
    assert limits.page(value) == given


@pytest.mark.django_db(transaction=True)
def test_whatever_is_refused_leaves_every_table_empty() -> None:
    for field, values in {
        "agent": AGENT_IDS,
        "sender_id": IDS,
        "message_id": IDS,
        "sender": NAMES,
        "text": ["", "x" * (MIB + 1), NUL, LONE],
    }.items():
        for value in values:
            with pytest.raises(BadInput):
                factories.enqueue(**{field: value})

    assert {name: rows for name, rows in factories.tables().items() if rows} == {}


@pytest.mark.django_db(transaction=True)
def test_a_text_of_one_mebibyte_is_accepted_and_kept_whole(holder: Holder) -> None:
    largest = "ä" * (MIB // 2)

    accepted = factories.enqueue(largest)

    assert factories.row(accepted.message_id).message == largest
    assert factories.claim(holder).primary.message == largest


@pytest.mark.django_db(transaction=True)
def test_a_row_id_that_was_never_given_is_unknown_to_every_verb(holder: Holder) -> None:
    factories.enqueue()
    claimed = factories.claim(holder)
    before = factories.tables()

    for row_id in (0, -1, 2**63 - 1, 2**63, HUGE, -HUGE):
        for verb in (queue.cancel, queue.retry_dead, queue.discard_dead):
            with pytest.raises(UnknownMessage, match=f"There is no message {row_id}. It may have"):
                verb(row_id, "owner")
        with pytest.raises(UnknownMessage, match=f"There is no message {row_id}. It may have"):
            queue.edit_and_retry(row_id, "again", "owner")
        with pytest.raises(UnknownRun, match=f"Run {row_id} is not going on"):
            queue.request_stop(row_id, "owner")
        assert not queue.ack(row_id)
        assert not queue.sending(row_id, claimed)
        assert not queue.undelivered(row_id, claimed, "gone", permanent=True)

    assert factories.tables() == before


@pytest.mark.django_db(transaction=True)
def test_editing_a_dead_message_to_a_bad_text_leaves_it_dead() -> None:
    row = factories.row(factories.enqueue().message_id)
    queue.cancel(row.pk, "owner", now=factories.NOW)
    before = factories.tables()

    for text in ("", " ", "x" * (MIB + 1), NUL, LONE):
        assert refused(lambda text=text: queue.edit_and_retry(row.pk, text, "owner")).startswith(
            "'message' "
        )

    assert factories.tables() == before


@pytest.mark.django_db(transaction=True)
def test_unreadable_and_endless_words_of_a_program_do_not_keep_its_run_from_ending(
    holder: Holder,
) -> None:
    accepted = factories.enqueue()
    claimed = factories.claim(holder)
    noise = f"{NUL} {LONE} " + "x" * (20 * MIB)

    assert queue.fail(claimed, factories.fault(ErrorClass.REFUSED, noise, partial=noise))

    row = Message.objects.get(message_id=accepted.message_id)
    assert (row.status, row.last_error[:12]) == ("dead", "a\ufffdb half \ufffd x")
    assert len(row.last_error) <= 4_000
    run = Run.objects.get()
    assert (run.error, run.partial[:12]) == (row.last_error, "a\ufffdb half \ufffd x")
    assert row.last_error[:100] in Response.objects.get().message


@pytest.mark.django_db(transaction=True)
def test_unreadable_words_of_a_platform_do_not_keep_an_answer_from_being_tried_again(
    holder: Holder,
) -> None:
    response_id = queue.respond(factories.new_response())
    held = queue.hold("channel:telegram", holder)
    assert held is not None
    assert queue.sending(response_id, held)

    assert queue.undelivered(response_id, held, f"{NUL} {LONE}", permanent=False)

    assert Response.objects.get().last_error == "a\ufffdb half \ufffd"
