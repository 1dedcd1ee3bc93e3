"""How far a fetch may read one partition, and what it is told instead of records. Pure.

A follower reads all that its leader has written; a consumer reads what is committed or, with read_committed, what is
decided too. Both are refused in Kafka's order: the leader epoch that they claim, who they are, then where they want to
read. A fetcher whose last epoch ended elsewhere gets no records: it is told where its log went another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.model.errors import NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, UNSUPPORTED_COMPRESSION_TYPE, Refused

if TYPE_CHECKING:
    from penstock.model.ids import Epoch, NodeId, Offset
    from penstock.replication.isr import Follower
    from penstock.replication.partition import Partition

ZSTD_SINCE: Final = 10
FOLLOWERS_SERVE_SINCE: Final = 11
"""The version of Fetch from which on consumers may be served by replicas that do not lead."""


class EpochEnds(Protocol):
    """The leader epochs that a log has seen."""

    def end_of(self, epoch: int) -> tuple[Epoch, Offset]:
        """The newest epoch that is not newer than `epoch`, and where it ended; -1 and -1 when there is none."""


class LogFacts(Protocol):
    """What a log tells of itself."""

    @property
    def log_start(self) -> Offset: ...
    @property
    def written(self) -> Offset: ...
    @property
    def committed(self) -> Offset: ...
    @property
    def last_stable(self) -> Offset: ...
    @property
    def epochs(self) -> EpochEnds: ...


class Wanted(Protocol):
    """What a fetch asks of one partition; -1 where it claims nothing."""

    @property
    def offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def last_fetched_epoch(self) -> int: ...


class Diverging(NamedTuple):
    """The fetcher's log went another way: the newest epoch that both can have, and where it ended here."""

    epoch: int
    end: int


def decide_consumer_read(
    state: Partition, log: LogFacts, wanted: Wanted, *, version: int, read_committed: bool, codec: str
) -> Offset | Diverging:
    """The offset that a consumer may read up to. `codec` is what the topic keeps its batches in."""
    state.check_read(wanted.leader_epoch, leader_only=version < FOLLOWERS_SERVE_SINCE)
    if version < ZSTD_SINCE and codec == "zstd":
        raise Refused(UNSUPPORTED_COMPRESSION_TYPE)
    diverging = _place(log, wanted)
    if diverging is not None:
        return diverging
    return log.last_stable if read_committed else log.committed


def decide_follower_read(
    state: Partition, log: LogFacts, wanted: Wanted, follower: NodeId, broker_epoch: int, *, outdated: bool
) -> Follower | Diverging:
    """The follower that fetches: it may read all that is written, and its fetch proves what it has.

    `outdated` says that another process has registered as this broker since.
    """
    state.check_read(wanted.leader_epoch)
    if outdated:
        raise Refused(NOT_LEADER_OR_FOLLOWER, "another process has registered as this broker")
    if wanted.leader_epoch < 0 and follower not in state.followers:
        # It may be one of another epoch, which only those can tell that name theirs.
        raise Refused(NOT_LEADER_OR_FOLLOWER, f"broker {follower} is not a replica of this partition")
    known = state.check_follower(follower, broker_epoch)
    return _place(log, wanted) or known


def _place(log: LogFacts, wanted: Wanted) -> Diverging | None:
    """Looks whether the log has the place that is asked for, by the history of its epochs and by its range."""
    diverging = _divergence(log, wanted) if wanted.last_fetched_epoch >= 0 else None
    if diverging is None and not log.log_start <= wanted.offset <= log.written:
        raise Refused(OFFSET_OUT_OF_RANGE)
    return diverging


def _divergence(log: LogFacts, wanted: Wanted) -> Diverging | None:
    epoch, end = log.epochs.end_of(wanted.last_fetched_epoch)
    if end < 0:
        raise Refused(OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end < wanted.offset:
        return Diverging(epoch, end)
    return None
