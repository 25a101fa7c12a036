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


def test_every_character_is_drawn_in_the_last_five_places() -> None:
    drawn = [ids.new_id("api").removeprefix("api_") for _ in range(2_000)]

    assert len(set(drawn)) > 1_900, "a few meet by chance; the queue draws these again"
    for place in list(zip(*drawn, strict=True))[-5:]:
        assert set(place) == set(ids.ALPHABET)


def test_ids_of_one_time_lie_side_by_side() -> None:
    hour = 3_600_000
    earlier = [ids.new_id("api", now=1_800_000_000_000) for _ in range(50)]
    later = [ids.new_id("api", now=1_800_000_000_000 + hour) for _ in range(50)]

    assert max(earlier) < min(later)
    assert len({drawn[:7] for drawn in earlier}) == 1
