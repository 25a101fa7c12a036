from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_app.masking import MASK, mask

MEGABYTE = 1_000_000
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

SECRETS = {
    "an OpenAI key": "sk-proj-abcDEF0123456789_-xyz",
    "an Anthropic key": "sk-ant-api03-abcDEF0123456789",
    "a token of ours": "toff_ab12_abcDEF0123456789-_x",
    "a GitHub token": "ghp_abcdefghijklmnopqrst0123456789",
    "a GitHub app token": "ghs_abcdefghijklmnopqrst",
    "a fine-grained GitHub token": "github_pat_11ABCDEFG0abcdefghij_klm",
    "a Slack token": "xoxb-1234567890-abcdef",
    "an AWS key": "AKIAIOSFODNN7EXAMPLE",
    "a Google key": "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "a Telegram bot token": "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
    "a signed web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize(
    "around",
    ["{}", "key: {}.", "\n{}\n", "\t{}", "'{}'", "KEY={}", "({})", "é {} é", "密钥{}。", "{}, {}"],
)
def test_a_secret_is_hidden_wherever_it_stands(secret: str, around: str) -> None:
    masked = mask(around.format(secret, secret))

    assert MASK in masked
    assert secret[4:] not in masked
    assert masked.replace(secret[:4], "").replace(MASK, "") == around.replace("{}", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://alice:s3cret@db/x", "postgres://•••@db/x"),
        ("https://u:p@a and http://v:q@b", "https://•••@a and http://•••@b"),
        ("https://ghp_abcdefghijklmnopqrst0:x-oauth@h", "https://•••@h"),
        ("https://sk-abcdefghijklmnopqrst:hunter2@h", "https://•••@h"),
        ("ftp://123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc@h", "ftp://•••@h"),
    ],
)
def test_a_name_and_password_in_an_address_are_hidden(text: str, expected: str) -> None:
    assert mask(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello, @coder",
        "sk-short",
        "task-force-abcdefghijklmnopqrstuvwxyz",
        "see https://example.org:8080/path?q=a@b",
        "mail alice@example.org",
        "http://host:80\n@coder look",
        "at 12:30 AAA",
        "disk-usage-of-the-whole-machine-is-high",
    ],
)
def test_a_text_without_secrets_is_left_as_it_is(text: str) -> None:
    assert mask(text) == text


def test_what_is_left_of_a_key_tells_its_kind() -> None:
    assert mask("sk-ant-api03-abcDEF0123456789") == "sk-a•••"
    assert mask("123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc") == "•••"


pieces = st.one_of(
    st.sampled_from(list(SECRETS.values())),
    st.sampled_from(["://", ":", "@", "/", " ", "\n", "-", "_", ".", "eyJ", "sk-", "AKIA", MASK]),
    st.text(LETTERS, min_size=1, max_size=120),
    st.text(max_size=5),
)
texts = st.lists(pieces, max_size=12).map("".join)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = mask(text)

    assert mask(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_characters="-_:")))
def test_a_text_without_the_characters_of_secrets_is_unchanged(text: str) -> None:
    harmless = text.replace("AKIA", "").replace("AIza", "").replace("eyJ", "")

    assert mask(harmless) == harmless


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30), st.sampled_from(list(SECRETS.values())), st.text(max_size=30))
def test_no_text_around_a_secret_brings_it_to_light(before: str, secret: str, after: str) -> None:
    masked = mask(f"{before}\n{secret} {after}")

    assert secret not in masked


@pytest.mark.parametrize(
    "piece",
    [
        "-eyJ",
        "eyJaaaaaaaaaa.",
        "eyJaaaaaaaaaa.eyJaaaaaaaaaa.!",
        "sk-",
        "sk-a ",
        "-sk-abc",
        "toff_aaaa",
        "toff_aaaa_!",
        "ghp_",
        "xoxb-",
        "AKIA",
        "12345678:AA",
        "1234567890",
        "://",
        "://a:",
        "://a:b",
        "a:b@",
        "://" + "a" * 100 + ":" + "b" * 200,
        "a",
        " ",
    ],
)
def test_a_megabyte_of_hostile_text_is_masked_within_seconds(piece: str) -> None:
    text = piece * (MEGABYTE // len(piece))
    began = time.process_time()

    mask(text)

    assert time.process_time() - began < 3.0
