"""Where our answers to transactional clients may differ from Apache Kafka's, and what the limits page says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.model.errors import INVALID_REGULAR_EXPRESSION, INVALID_TOPIC_EXCEPTION, NONE
from penstock.model.ids import INTERNAL_TOPICS
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


SMALL_BYTES = 100
"""What a partition may answer in scripts that ask for less than there is."""


class Deviation(NamedTuple):
    """`says` stands on the limits page, word for word."""

    name: str
    applies: Callable[[Exchange, Difference], bool]
    says: str


def _to_a_topic_of_brokers(exchange: Exchange, difference: Difference) -> bool:
    """Whether a produce was refused for its topic before it was refused, or added, by the coordinator."""
    if exchange.api == "Produce":
        return difference.path.endswith(".error_code") and difference.ours == INVALID_TOPIC_EXCEPTION.code
    return (
        exchange.api == "DescribeTransactions"
        and difference.path.endswith(".topics[]")
        and isinstance(difference.ours, int)
        and isinstance(difference.theirs, list)
        and all(each.topic in INTERNAL_TOPICS for each in difference.theirs)
    )


def _aborted_behind_the_answer(exchange: Exchange, difference: Difference) -> bool:
    """Whether Kafka lists transactions that begin behind the first batch of an answer that has no room for more."""
    if exchange.api != "Fetch" or not difference.path.endswith(".aborted_transactions[]"):
        return False
    wanted = [partition for topic in exchange.request.topics for partition in topic.partitions]
    return (
        difference.ours == 0
        and isinstance(difference.theirs, list)
        and all(partition.partition_max_bytes <= SMALL_BYTES for partition in wanted)
        and all(each.first_offset > min(partition.fetch_offset for partition in wanted) for each in difference.theirs)
    )


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "aborted behind the answer",
        _aborted_behind_the_answer,
        "aborted transactions that begin behind what is answered are not listed",
    ),
    Deviation(
        "a produce to a topic of brokers",
        _to_a_topic_of_brokers,
        "A transactional produce to a topic that only brokers write is told so at once",
    ),
    Deviation(
        "one byte of a letter",
        lambda exchange, difference: (
            exchange.api == "ListTransactions"
            and "\\C" in (exchange.request.transactional_id_pattern or "")
            and (difference.ours, difference.theirs) == (NONE.code, INVALID_REGULAR_EXPRESSION.code)
        ),
        "`\\C`, one byte of a letter, is a pattern of transactional ids here and none to Kafka",
    ),
    *(Deviation(*each) for each in OF_ANSWERS if each.name in ALSO_HERE),
)


def excuse_of(exchange: Exchange, difference: Difference) -> str | None:
    """The name of the deviation that allows a difference; None when none does."""
    return next((each.name for each in DEVIATIONS if each.applies(exchange, difference)), None)
