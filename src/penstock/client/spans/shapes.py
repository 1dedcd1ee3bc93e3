"""What goes into a read of spans and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.kernels import ColumnSink

PIECE_BYTES: Final = 4 << 20
GAPS_NAMED: Final = 100
"""A compacted log has a gap at every other record; the first ones are enough to look for the cause."""


class TopicReplaced(ClientError):
    """The topic was deleted and made anew: the offsets asked for were of records that are gone."""


class EndLost(ClientError):
    """The log ends before the span does: what was there has been cut off."""


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets [start, end) of one partition. `topic_id` as brokers spell it; empty takes whichever topic there is."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def count(self) -> int:
        """How many offsets it has; a log may hold fewer records."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one span, in order. The sink takes no more; its buffers are the caller's."""

    span: Span
    sink: ColumnSink
    rows: int
    timestamp_type: int
    """0: the time a producer gave, 1: when the broker got it."""


@dataclass(frozen=True, slots=True)
class SpanEnd:
    """A span was read to its end."""

    span: Span
    rows: int
    gaps: tuple[tuple[int, int], ...]
    """Ranges [from, to) without a record; the first hundred of them."""
    missing: int
    """How many offsets of the span hold no record, all of them counted."""
    log_start: int
    """The first offset of the log as it was last heard of, -1 if never."""
    trimmed: int
    """How many of the missing lay before the start of the log when they were asked for."""
