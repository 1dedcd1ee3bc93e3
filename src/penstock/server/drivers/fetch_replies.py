"""What a fetch has found, made into its reply: the message, or at once the bytes when nothing unusual is among it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.plain_fetch import Plain, write_plain_answer
from penstock.protocol.wire import Spans
from penstock.server.context import Encoded

if TYPE_CHECKING:
    from penstock.replication.fetch_session import FetchSession, Interest
    from penstock.storage.log import Log


class Found:
    """What is told of one partition. Nothing but the ends and `spans` is set where nothing is unusual.

    `diverging` is (epoch, end offset) to cut the log to; `leader` is (node, epoch) where the fetcher should turn to;
    `aborted` are (producer id, first offset) for a reader of committed transactions, None for a consumer of all.
    """

    __slots__ = (
        "aborted", "diverging", "error_code", "high_watermark", "last_stable", "leader", "log_start", "preferred",
        "size", "spans",
    )  # fmt: skip

    def __init__(self, high_watermark: int, last_stable: int, log_start: int, error_code: int = 0) -> None:
        self.high_watermark, self.last_stable, self.log_start = high_watermark, last_stable, log_start
        self.error_code = error_code
        self.diverging: tuple[int, int] | None = None
        self.leader: tuple[int, int] | None = None
        self.aborted: Sequence[tuple[int, int]] | None = ()
        self.preferred = -1
        self.spans: Sequence[Any] = ()
        self.size = 0

    @classmethod
    def in_log(cls, log: Log) -> Found:
        return cls(log.committed, log.last_stable, log.log_start)

    @property
    def plain(self) -> bool:
        return not (self.error_code or self.diverging or self.leader or self.aborted) and self.preferred < 0


Finds = Sequence[tuple["Interest", Found]]


def encoded(session: FetchSession, version: int, finds: Finds) -> Encoded | None:
    """The reply's body; None when one of the finds takes the general codec to tell."""
    by_topic: dict[str | bytes, list[Plain]] = {}
    by_id = session.by_id
    for interest, found in finds:
        if not found.plain:
            return None
        told = Plain(
            interest.partition, found.high_watermark, found.last_stable, found.log_start, found.aborted is not None,
            found.spans, found.size,
        )  # fmt: skip
        name = interest.topic_id if by_id else interest.topic
        others = by_topic.get(name)
        if others is None:
            by_topic[name] = [told]
        else:
            others.append(told)
    return Encoded(write_plain_answer(version, session.id, by_topic.items()))


def message(session: FetchSession, finds: Finds) -> FetchResponse:
    by_topic: dict[str | bytes, FetchResponse.FetchableTopicResponse] = {}
    for interest, found in finds:
        name = interest.topic_id if session.by_id else interest.topic
        topic = by_topic.get(name)
        if topic is None:
            topic = by_topic[name] = FetchResponse.FetchableTopicResponse(
                topic=interest.topic, topic_id=interest.topic_id
            )
        topic.partitions.append(_data(interest.partition, found))
    return FetchResponse(session_id=session.id, responses=list(by_topic.values()))


def _data(partition: int, found: Found) -> FetchResponse.PartitionData:
    data = FetchResponse.PartitionData(
        partition_index=partition,
        error_code=found.error_code,
        high_watermark=found.high_watermark,
        last_stable_offset=found.last_stable,
        log_start_offset=found.log_start,
        aborted_transactions=None,
        preferred_read_replica=found.preferred,
        records=Spans(list(found.spans)) if found.size else b"",
    )
    if found.aborted is not None:
        data.aborted_transactions = [
            FetchResponse.AbortedTransaction(producer_id=producer, first_offset=first)
            for producer, first in found.aborted
        ]
    if found.diverging is not None:
        epoch, end = found.diverging
        data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end)
    if found.leader is not None:
        leader, leader_epoch = found.leader
        data.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=leader_epoch)
    return data
