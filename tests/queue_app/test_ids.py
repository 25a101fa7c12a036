from __future__ import annotations

import re

import pytest

from queue_app import ids


@pytest.mark.parametrize("prefix", sorted(ids.PREFIXES))
def test_an_id_is_its_source_and_eight_small_letters_or_digits(prefix: str) -> None:
    drawn = ids.new_id(prefix)

    assert re.fullmatch(rf"{prefix}_[a-z0-9]{{8}}", drawn)


@pytest.mark.parametrize("prefix", ["", "sms", "API", "api_", "../api", "a\0b"])
def test_a_source_that_is_not_listed_counts_as_the_api(prefix: str) -> None:
    drawn = ids.new_id(prefix)

    assert re.fullmatch(r"api_[a-z0-9]{8}", drawn)


def test_the_sources_are_the_documented_ones() -> None:
    documented = (
        "api discord telegram whatsapp web cli internal chat chatroom chatroom_batch "
        "proactive schedule heartbeat"
    )

    assert set(documented.split()) == ids.PREFIXES


def test_every_character_is_drawn_in_every_place_and_no_id_twice() -> None:
    drawn = [ids.new_id("api").removeprefix("api_") for _ in range(2_000)]

    assert len(set(drawn)) == len(drawn)
    for place in zip(*drawn, strict=True):
        assert set(place) == set(ids.ALPHABET)
