"""What goes into a read of spans and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.client.errors import ClientError, UnknownTopic
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.kernels import ColumnSink

PIECE_BYTES: Final = 4 << 20
GAPS_NAMED: Final = 100
"""A compacted log has a gap at every other record; the first ones are enough to look for the cause."""


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


class SpanLost(ClientError):
    """What a span was to hold is not there, or no longer. `span` says which; another read may go on without it."""

    span: Span

    def __init__(self, span: Span, why: str, *, where: str, error: ErrorCode | None = None) -> None:
        super().__init__(why, where=where, error=error, retriable=False)
        self.span = span

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (type(self), self.span, self.why, self.where, self.error)


def _remade(kind: type[SpanLost], span: Span, why: str, where: str, error: ErrorCode | None) -> SpanLost:
    return kind(span, why, where=where, error=error)


class TopicReplaced(SpanLost):
    """The topic was deleted and made anew: the offsets asked for were of records that are gone."""


class TopicGone(SpanLost, UnknownTopic):
    """The topic or the partition does not exist."""


class EndLost(SpanLost):
    """The log ends before the span does: what was there has been cut off."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one span, in order. The sink takes no more; its buffers are the caller's."""

    span: Span
    sink: ColumnSink
    rows: int
    timestamp_type: int
    """0: the time a producer gave, 1: when the broker got it."""


OnTrimmed: TypeAlias = Callable[[Span, int, int], None]
"""Told of a span whose offsets [from, to) lie before the start of its log. What it raises ends the read."""


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
