"""One replica as its follower sees it: what to ask its leader next, and what an answer means for the log. Pure.

Facts about the log come in as arguments; what is decided here the fetcher does. An answer counts only for the position
that was asked: whoever got a new leader, or moved on, since the question drops it. Where the log begins is told, for
DeleteRecords waits for it, and is no part of what an answer answers: retention moves it at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from penstock.model.errors import FENCED_LEADER_EPOCH, OFFSET_OUT_OF_RANGE
from penstock.model.ids import Epoch, Offset

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader
    from penstock.model.ids import PartitionKey, TopicPartition

RETRY_FIRST_MS: Final = 20.0
NO_SYNC: Final = Offset(-1)
_NEVER_SENT: Final = -1


class Position(NamedTuple):
    """What a fetch tells the leader of one partition."""

    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start: int

    def reads_as(self, other: Position) -> bool:
        """Whether the answer to one is the answer to the other."""
        return self[:3] == other[:3]


H = TypeVar("H")

ANEW: Final = Position(-1, -1, -1, -1)
"""What the leader's session holds is to be said again, wherever that was."""


class Following(Generic[H]):
    """A partition and its leader's epoch. `hosted` is the driver's handle; this room only carries it.

    `sent` is what the leader's session holds of it, None when it holds nothing; `sent_in` is the request that said so.
    `held` says why it is left out of fetches for now, empty when it is not. `hold` counts holds, so that a wake-up
    that was meant for an earlier one is known. `awaited_sync` is the end whose sync somebody will tell it about.
    `arriving` is set while a long answer comes into the log: it has no place to speak of until that is over.
    """

    __slots__ = (
        "arriving", "awaited_sync", "epoch", "held", "hold", "hosted", "key", "leader_high_watermark", "name",
        "retries", "sent", "sent_in",
    )  # fmt: skip

    def __init__(self, key: PartitionKey, name: TopicPartition, epoch: Epoch, hosted: H) -> None:
        self.key, self.name, self.epoch, self.hosted = key, name, epoch, hosted
        self.sent: Position | None = None
        self.sent_in = _NEVER_SENT
        self.held = ""
        self.arriving = False
        self.hold = self.retries = 0
        self.leader_high_watermark = Offset(-1)
        self.awaited_sync = NO_SYNC

    def answers(self, request_number: int, position: Position) -> bool:
        """Whether the reply to a request speaks of where this replica is now."""
        sent = self.sent
        return not self.held and sent is not None and self.sent_in <= request_number and sent.reads_as(position)

    def lag(self, end: int) -> int:
        """How many committed records are missing here, as far as the leader has told."""
        return max(0, self.leader_high_watermark - end)


class Course(Enum):
    """What an error of a fetched partition asks for."""

    RETRY_SOON = "retry soon"
    RETRY_LATER = "retry later"
    FIND_RANGE = "find the range"


def course_of(error_code: int) -> Course:
    """Most errors end with an election that one side has heard of and the other has not yet: it takes milliseconds.

    FENCED_LEADER_EPOCH is ours to mend: the next metadata has our new role, and asking before is in vain.
    """
    if error_code == OFFSET_OUT_OF_RANGE.code:
        return Course.FIND_RANGE
    if error_code == FENCED_LEADER_EPOCH.code:
        return Course.RETRY_LATER
    return Course.RETRY_SOON


def pause_ms(retries: int, most_ms: int) -> float:
    """How long to wait before the next try: a moment first, then longer up to `replica.fetch.backoff.ms`."""
    return min(float(most_ms), RETRY_FIRST_MS * (1 << min(retries, 16)))


def truncation_point(
    epoch: int, end: int, *, own_end_of: Callable[[int], tuple[Epoch, Offset]], log_end: Offset
) -> Offset:
    """Where to cut after the leader said that `epoch` ended at `end` with it and our log went another way.

    When our log has no such epoch the cut is where our next older one ends, and the next fetch asks about that one:
    so the two histories are walked back until they meet, and never further.
    """
    own_epoch, own_end = own_end_of(epoch)
    if own_end < 0:
        return Offset(min(max(end, 0), log_end))  # we know nothing of epochs; the leader does
    if own_epoch != epoch:
        return Offset(min(own_end, log_end))
    return Offset(min(own_end, end, log_end))


class Restart(NamedTuple):
    """Throw the log away and begin at `start`."""

    start: Offset


class Cut(NamedTuple):
    """Cut the log at `to`."""

    to: Offset


def range_mended(log_start: Offset, log_end: Offset, leader_start: int, leader_end: int) -> Restart | Cut | None:
    """What to do when our end lies outside of the leader's log; None when it does not lie outside after all.

    Of a log that begins where the leader's ends, or behind it, a cut would leave nothing: an empty log at the leader's
    end looks caught up and lacks all that the leader has. It begins where the leader's does.
    """
    if leader_end < log_end:
        if leader_end <= log_start:
            return Restart(Offset(max(leader_start, 0)))
        return Cut(Offset(max(leader_end, 0)))
    if leader_start > log_end:
        return Restart(Offset(leader_start))
    return None


def taken(batches: Sequence[tuple[int, BatchHeader]], epoch: Epoch) -> int:
    """How many of the batches may be appended: those up to the first of a newer leader epoch than was asked with.

    That one belongs to a leader that we have not compared our log with yet.
    """
    for index, (_, header) in enumerate(batches):
        if header.leader_epoch > epoch:
            return index
    return len(batches)
