"""Medians, percentiles and ratios of what was timed; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple


class Timing(NamedTuple):
    """One step as it was timed."""

    measure: str
    messages: int
    seconds: float


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Series:
    """One measure on one database over all rounds."""

    rates: list[float] = field(default_factory=list)  # messages per second, one per round
    steps: list[float] = field(default_factory=list)  # milliseconds, one per step

    @property
    def rate(self) -> float:
        """Return the median rate of the rounds."""
        return median(self.rates)

    @property
    def spread(self) -> float:
        """Return the middle half of the rounds, as a share of the median."""
        return (percentile(self.rates, 0.75) - percentile(self.rates, 0.25)) / self.rate

    def ratio_to(self, other: Series) -> float:
        """Return the ratio of the medians."""
        return self.rate / other.rate

    def paired_ratio_to(self, other: Series) -> float:
        """Return the median of the rounds' own ratios, in which a slow moment hits both sides."""
        return median(mine / its for mine, its in zip(self.rates, other.rates, strict=True))


class Book:
    """All series of one database, by measure."""

    def __init__(self) -> None:
        self.series: defaultdict[str, Series] = defaultdict(Series)

    def add(self, timings: Iterable[Timing]) -> None:
        """Add one round's timings of one block."""
        rounds: defaultdict[str, list[Timing]] = defaultdict(list)
        for timing in timings:
            rounds[timing.measure].append(timing)
        for measure, its in rounds.items():
            messages = sum(timing.messages for timing in its)
            series = self.series[measure]
            series.rates.append(messages / sum(timing.seconds for timing in its))
            series.steps += [timing.seconds * 1000 for timing in its]
