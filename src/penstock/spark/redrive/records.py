"""A dead letter as the record that it was. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from penstock.spark.lake.judging import RULE_BROKEN
from penstock.spark.values.dead_letters import (
    HEADER_ERROR,
    HEADER_OFFSET,
    HEADER_PARTITION,
    HEADER_TIMESTAMP,
    HEADER_TOPIC,
)
from penstock.spark.values.letters import DeadLetter

HEADER_REDRIVEN: Final = "penstock.redriven"
"""Says of a record that it was a dead letter before, and of which: TOPIC-PARTITION@OFFSET, and its time."""

Headers = Sequence[tuple[str, bytes | None]]
_FIRST: Final = (HEADER_TOPIC, HEADER_PARTITION, HEADER_OFFSET, HEADER_ERROR)


@dataclass(frozen=True, slots=True)
class Resent:
    """A record to be sent. `partition` is None where its key says which."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


def letter_of(key: bytes | None, value: bytes | None, headers: Headers) -> DeadLetter | None:
    """The letter that a record of a topic of letters is; None when nobody of ours wrote it.

    What letters have comes before the record's own headers, which may have the same names."""
    if tuple(name for name, _ in headers[: len(_FIRST)]) != _FIRST:
        return None
    topic, partition, offset, error = ((content or b"").decode(errors="replace") for _, content in headers[:4])
    own, timestamp = headers[len(_FIRST) :], None
    try:
        if own and own[0][0] == HEADER_TIMESTAMP:
            timestamp = datetime.fromisoformat((own[0][1] or b"").decode())
            own = own[1:]
        return DeadLetter(topic, int(partition), int(offset), timestamp, key, value, tuple(own), error)
    except ValueError:
        return None


def broke_a_rule(letter: DeadLetter) -> bool:
    """Whether an expectation made it a letter: its value is the row then, as JSON, and not the record's."""
    return letter.error.startswith(RULE_BROKEN) and not letter.headers


def resent(letter: DeadLetter, *, into: str | None, partitions: int) -> Resent:
    """Key, value and headers as they were, and where it comes from. Its own topic has it in its own partition."""
    at = "" if letter.timestamp is None else f" {letter.timestamp.isoformat()}"
    origin = f"{letter.topic}-{letter.partition}@{letter.offset}{at}".encode()
    own = into is None and letter.partition < partitions
    return Resent(
        into or letter.topic,
        letter.partition if own else None,
        letter.key,
        letter.value,
        [*letter.headers, (HEADER_REDRIVEN, origin)],
    )
