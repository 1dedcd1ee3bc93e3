"""Where our answers to transactional clients may differ from Apache Kafka's, and what the limits page says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.compat.answers.comparing import Difference
from tests.compat.answers.deviations import DEVIATIONS as OF_ANSWERS
from tests.compat.answers.duo import Exchange

ALSO_HERE = frozenset(
    {
        "named twice",
        "a topic without partitions",
        "the log start of a refused produce",
        "the time of a duplicate",
        "no aborted transactions",
    }
)
"""Deviations of answers to random requests that show up here too."""


class Deviation(NamedTuple):
    """`says` stands on the limits page, word for word."""

    name: str
    applies: Callable[[Exchange, Difference], bool]
    says: str


DEVIATIONS: tuple[Deviation, ...] = (*(Deviation(*each) for each in OF_ANSWERS if each.name in ALSO_HERE),)


def excuse_of(exchange: Exchange, difference: Difference) -> str | None:
    """The name of the deviation that allows a difference; None when none does."""
    return next((each.name for each in DEVIATIONS if each.applies(exchange, difference)), None)
