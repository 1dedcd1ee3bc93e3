"""Where our answers to people with different rights may differ from Apache Kafka's, and what the limits page says."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.model.errors import NONE, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from penstock.model.ids import METADATA_TOPIC
from penstock.model.security import Operation
from tests.compat.answers.comparing import Difference
from tests.compat.answers.deviations import DEVIATIONS as OF_ANSWERS
from tests.compat.answers.duo import Exchange
from tests.compat.authorization.questions import PENSTOCK_TOPIC

_STEERED = (repr(METADATA_TOPIC), repr(PENSTOCK_TOPIC))
_STEERING = sum(
    1 << each for each in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS)
)
ALSO_HERE = frozenset(
    {
        "what is not served",
        "features that are not there",
        "a topic without partitions",
    }
)
"""Deviations of answers to random requests that show up here too."""


class Deviation(NamedTuple):
    """`says` stands on the limits page, word for word."""

    name: str
    applies: Callable[[Exchange, Difference], bool]
    says: str


def _is_steered(_exchange: Exchange, difference: Difference) -> bool:
    """Whether a wide ACL opens a topic to Kafka that it does not open to us; and nothing else but that differs."""
    if not any(name in key for key in difference.at for name in _STEERED):
        return False
    if difference.path.endswith(".topic_authorized_operations"):
        return bool(difference.ours == difference.theirs & ~_STEERING)
    codes = (TOPIC_AUTHORIZATION_FAILED.code, UNKNOWN_TOPIC_OR_PARTITION.code)
    return difference.path.endswith(".error_code") and (difference.ours, difference.theirs) == codes


def _makes_topics(exchange: Exchange, difference: Difference) -> bool:
    """Whether one topic is there at once and the other soon; what was made is compared when it is removed again."""
    if exchange.api != "Metadata" or not exchange.request.allow_auto_topic_creation:
        return False
    ours = {repr(each.name): each.error_code for each in exchange.ours.topics}
    theirs = {repr(each.name): each.error_code for each in exchange.theirs.topics}
    made = (NONE.code, UNKNOWN_TOPIC_OR_PARTITION.code)
    if difference.at:
        ((name, *_), *_) = difference.at
        return (ours.get(name), theirs.get(name)) == made
    # One of the two has ids that the other has not told yet.
    sides = (difference.ours, difference.theirs)
    named = {repr(each.name) for side in sides if isinstance(side, list) for each in side}
    return ours.keys() == theirs.keys() and all((ours[name], theirs[name]) == made for name in named)


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "what steers the cluster",
        _is_steered,
        "READ, WRITE, DELETE, ALTER and ALTER_CONFIGS of `__cluster_metadata` and of topics that begin with "
        "`__penstock_` take an ACL that names them: `*` and shorter prefixes do not open them.",
    ),
    Deviation(
        "topics that are made by asking",
        _makes_topics,
        "Metadata that makes a missing topic: ours waits until it is there, Kafka lets the client come back",
    ),
    *(Deviation(*each) for each in OF_ANSWERS if each.name in ALSO_HERE),
)


def excuse_of(exchange: Exchange, difference: Difference) -> str | None:
    """The name of the deviation that allows a difference; None when none does."""
    return next((each.name for each in DEVIATIONS if each.applies(exchange, difference)), None)
