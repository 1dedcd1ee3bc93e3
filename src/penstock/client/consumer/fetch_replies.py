"""What a broker's answer to a fetch means for one partition: records, another place to ask, patience, or the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.batches import Batch, open_fetched
from penstock.client.consumer.partition import AssignedPartition, CorruptBatch
from penstock.client.errors import refusal
from penstock.client.settings import ConsumerSettings
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_of,
)
from penstock.model.ports import Clock
from penstock.protocol.messages.fetch import FetchResponse

_MOVED: Final = (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)


class Verdict(Enum):
    """What the fetcher does next about a partition."""

    FINE = auto()  # take the records in
    AGAIN = auto()  # ask again at once: somebody else, or from elsewhere; or it has failed for good
    LATER = auto()  # metadata is wrong or something has to heal


class ReplyReader:
    """Reads the partitions of fetch replies and moves their state accordingly."""

    def __init__(
        self,
        view: ClusterView,
        settings: ConsumerSettings,
        out_of_range: Callable[[AssignedPartition, int], None],
        clock: Clock,
    ) -> None:
        self._view, self._settings, self._out_of_range, self._clock = view, settings, out_of_range, clock

    def read(
        self,
        partition: AssignedPartition,
        data: FetchResponse.PartitionData,
        offset: int,
        node_id: int,
        endpoints: Mapping[int, tuple[str, int]],
    ) -> Verdict:
        """`offset` is what was asked for, `node_id` who answered, `endpoints` what the reply says of new leaders."""
        if data.error_code:
            return self._refused(partition, data, offset, node_id, endpoints)
        partition.high_watermark = data.high_watermark
        partition.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            partition.log_start = data.log_start_offset
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node_id:
            partition.read_replica = data.preferred_read_replica
            age_ms = self._settings.metadata_max_age_ms
            partition.read_replica_until_ms = self._clock.monotonic_ms() + age_ms
            return Verdict.FINE if data.records else Verdict.AGAIN
        return Verdict.FINE

    def batches_of(self, partition: AssignedPartition, data: FetchResponse.PartitionData) -> list[Batch]:
        """The batches in a reply that was fine."""
        records = data.records
        assert isinstance(records, (bytes, bytearray, memoryview)), "only a broker's own replies hold file spans"
        committed_only = self._settings.isolation_level == "read_committed"
        return open_fetched(
            records,
            partition.fetch_offset,
            aborted=(data.aborted_transactions or ()) if committed_only else None,
            check_crcs=self._settings.check_crcs,
        )

    def _refused(
        self,
        partition: AssignedPartition,
        data: FetchResponse.PartitionData,
        offset: int,
        node_id: int,
        endpoints: Mapping[int, tuple[str, int]],
    ) -> Verdict:
        error = error_of(data.error_code)
        if partition.read_replica is not None and node_id == partition.read_replica:
            # Whatever a follower cannot do, the leader may: it lags behind, moved away, or its log begins later.
            partition.read_replica = None
            if error is OFFSET_OUT_OF_RANGE:
                return Verdict.AGAIN
        if error is OFFSET_OUT_OF_RANGE and node_id != self._view.leader_of(*partition.tp):
            # It leads no more, and may lag behind: only the leader knows which offsets there are.
            return Verdict.LATER
        if error in _MOVED:
            leader = data.current_leader
            endpoint = endpoints.get(leader.leader_id)
            if self._view.learned(*partition.tp, leader.leader_id, leader.leader_epoch, endpoint):
                return Verdict.AGAIN
            return Verdict.LATER
        if error is OFFSET_OUT_OF_RANGE:
            if partition.batches:
                # What is buffered was good. When the application has it all we shall ask again.
                return Verdict.LATER
            self._out_of_range(partition, offset)
            return Verdict.AGAIN
        if error is CORRUPT_MESSAGE:
            partition.fail(
                CorruptBatch(
                    f"the broker cannot read its log at offset {offset}; seek past it to go on",
                    where=str(partition.tp),
                    error=CORRUPT_MESSAGE,
                    retriable=False,
                )
            )
            return Verdict.AGAIN
        if error.retriable or error in (UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION):
            return Verdict.LATER
        partition.fail(refusal(error.code, None, str(partition.tp)))
        return Verdict.AGAIN
