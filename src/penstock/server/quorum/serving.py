"""Serves the metadata log to its followers and observers: Fetch with a long poll, and snapshots piece by piece.

A fetch that waits is one future and one timer. It is answered when there are records, when the high watermark is ahead
of what the follower knows, when the epoch is over, or when its time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import (
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    NONE,
    POSITION_OUT_OF_RANGE,
    SNAPSHOT_NOT_FOUND,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    Corrupt,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Epoch, NodeId, Offset
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from penstock.quorum.fetching import Diverges, NeedsSnapshot, judge_fetch
from penstock.quorum.state import ReplicaKey
from penstock.server.loops.duty import duty
from penstock.server.quorum.messages import endpoints
from penstock.server.quorum.snapshot_file import SnapshotId

if TYPE_CHECKING:
    from penstock.model.ports import Files, Offload
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.protocol.messages.fetch_snapshot import FetchSnapshotRequest
    from penstock.server.quorum.log import QuorumLog
    from penstock.server.quorum.messages import LeaderNow

_EPOCHS_SINCE: Final = 12
"""Fetches of older versions know nothing of leaders and diverging logs."""
_IDS_SINCE: Final = 13
_WAITING_MAX: Final = 1_000
_WAIT_MAX_MS: Final = 5_000
_PIECE_BYTES_MAX: Final = 8 << 20


class Served(Protocol):
    """What the quorum driver tells of its machine."""

    @property
    def high_watermark(self) -> Offset | None: ...
    @property
    def leader_now(self) -> LeaderNow: ...
    def check_fetch(self, epoch: Epoch) -> ErrorCode: ...
    def replica_fetched(self, replica: ReplicaKey, end: Offset | None) -> None: ...


@dataclass(slots=True, eq=False)
class _Waiting:
    """A fetch at the end of the log."""

    replica: ReplicaKey
    epoch: Epoch
    offset: Offset
    high_watermark: int
    max_bytes: int
    version: int
    future: asyncio.Future[FetchResponse]
    timer: asyncio.TimerHandle | None = None


class QuorumServing:
    """Answers fetches while this node leads, and says who leads when it does not."""

    def __init__(self, quorum: Served, log: QuorumLog, files: Files, offload: Offload, cluster_id: str) -> None:
        self._quorum, self._log, self._files, self._offload = quorum, log, files, offload
        self._cluster_id = cluster_id
        self._waiting: dict[int, _Waiting] = {}
        self._next = 0

    def __len__(self) -> int:
        """How many fetches wait."""
        return len(self._waiting)

    # Fetch

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse | Awaitable[FetchResponse]:
        problem = self._problem(request, version)
        if problem is not NONE:
            return FetchResponse(error_code=problem.code)
        part = request.topics[0].partitions[0]
        epoch, offset = Epoch(part.current_leader_epoch), Offset(part.fetch_offset)
        error = self._quorum.check_fetch(epoch)
        if error is not NONE:
            return self._fetched(version, error=error)
        sender = request.replica_state.replica_id if version >= 15 else request.replica_id
        replica = ReplicaKey(NodeId(sender), part.replica_directory_id)
        verdict = judge_fetch(self._log.view(), offset, Epoch(part.last_fetched_epoch))
        if isinstance(verdict, Diverges):
            return self._fetched(version, diverging=verdict)
        if isinstance(verdict, NeedsSnapshot):
            return self._fetched(version, snapshot=verdict)
        if sender >= 0:
            self._quorum.replica_fetched(replica, offset)
        if self._quorum.check_fetch(epoch) is not NONE:
            # That fetch committed our own removal from the voters.
            return self._fetched(version, error=self._quorum.check_fetch(epoch))
        waiting = _Waiting(
            replica, epoch, offset, part.high_watermark, min(part.partition_max_bytes, request.max_bytes), version,
            asyncio.get_running_loop().create_future(),
        )  # fmt: skip
        if request.max_wait_ms <= 0 or self._due(waiting) or len(self._waiting) >= _WAITING_MAX:
            return self._answer(waiting)
        return self._park(waiting, min(request.max_wait_ms, _WAIT_MAX_MS))

    def _problem(self, request: FetchRequest, version: int) -> ErrorCode:
        if version < _EPOCHS_SINCE:
            return UNSUPPORTED_VERSION
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return INCONSISTENT_CLUSTER_ID
        if len(request.topics) != 1 or [each.partition for each in request.topics[0].partitions] != [0]:
            return INVALID_REQUEST
        topic = request.topics[0]
        if version >= _IDS_SINCE:
            return NONE if topic.topic_id == METADATA_TOPIC_ID else UNKNOWN_TOPIC_ID
        return NONE if topic.topic == METADATA_TOPIC else UNKNOWN_TOPIC_OR_PARTITION

    def _due(self, waiting: _Waiting) -> bool:
        high_watermark = self._quorum.high_watermark
        return self._log.end > waiting.offset or (
            high_watermark is not None and high_watermark > waiting.high_watermark
        )

    def _park(self, waiting: _Waiting, wait_ms: int) -> asyncio.Future[FetchResponse]:
        for number, other in list(self._waiting.items()):
            if other.replica == waiting.replica and other.replica.id >= 0:
                # Its link broke, or it gave up waiting: nobody listens any more.
                self._release(number)
        number = self._next = self._next + 1
        loop = asyncio.get_running_loop()
        waiting.timer = loop.call_later(wait_ms / 1_000, self._release, number)
        self._waiting[number] = waiting
        return waiting.future

    def _release(self, number: int) -> None:
        waiting = self._waiting.pop(number)
        if waiting.timer is not None:
            waiting.timer.cancel()
        answer = self._answer(waiting)
        if isinstance(answer, FetchResponse):
            if not waiting.future.done():
                waiting.future.set_result(answer)
        else:
            duty(self._answer_later(waiting, answer), name="fetch of old metadata")

    def look(self) -> None:
        """The log, the high watermark or the epoch has moved."""
        for number, waiting in list(self._waiting.items()):
            if self._due(waiting) or self._quorum.check_fetch(waiting.epoch) is not NONE:
                self._release(number)

    def close(self) -> None:
        """Answers everybody."""
        for number in list(self._waiting):
            self._release(number)

    def crash(self) -> None:
        for waiting in self._waiting.values():
            if waiting.timer is not None:
                waiting.timer.cancel()
        self._waiting.clear()

    def _answer(self, waiting: _Waiting) -> FetchResponse | Awaitable[FetchResponse]:
        """At once from memory; what is older waits for the disk."""
        error = self._quorum.check_fetch(waiting.epoch)
        if error is not NONE:
            return self._fetched(waiting.version, error=error)
        records = self._log.read(waiting.offset, waiting.max_bytes)
        if isinstance(records, bytes):
            return self._fetched(waiting.version, records=records)
        return self._read_back(waiting, records)

    async def _read_back(self, waiting: _Waiting, reading: Awaitable[bytes]) -> FetchResponse:
        try:
            records = await reading
        except (Corrupt, Refused, StorageFailed):
            return self._fetched(waiting.version, error=UNKNOWN_SERVER_ERROR)
        error = self._quorum.check_fetch(waiting.epoch)
        return self._fetched(waiting.version, error=error, records=b"" if error is not NONE else records)

    async def _answer_later(self, waiting: _Waiting, answer: Awaitable[FetchResponse]) -> None:
        response = await answer
        if not waiting.future.done():
            waiting.future.set_result(response)

    def _fetched(
        self,
        version: int,
        *,
        error: ErrorCode = NONE,
        records: bytes = b"",
        diverging: Diverges | None = None,
        snapshot: NeedsSnapshot | None = None,
    ) -> FetchResponse:
        now, high_watermark = self._quorum.leader_now, self._quorum.high_watermark
        part = FetchResponse.PartitionData(
            error_code=error.code,
            high_watermark=-1 if high_watermark is None else high_watermark,
            log_start_offset=-1 if error is not NONE else self._log.start,
            current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=now.leader, leader_epoch=now.epoch),
            aborted_transactions=None,
            records=records,
        )
        if diverging is not None:
            end, epoch = diverging.point
            part.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end)
        if snapshot is not None:
            end, epoch = snapshot.snapshot
            part.snapshot_id = FetchResponse.SnapshotId(end_offset=end, epoch=epoch)
        topic = FetchResponse.FetchableTopicResponse(
            topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[part]
        )
        told = endpoints(FetchResponse.NodeEndpoint, now) if version >= 16 else []
        return FetchResponse(responses=[topic], node_endpoints=told)

    # Snapshots

    async def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return FetchSnapshotResponse(error_code=INCONSISTENT_CLUSTER_ID.code)
        named = [(topic.name, [each.partition for each in topic.partitions]) for topic in request.topics]
        if named != [(METADATA_TOPIC, [0])]:
            return FetchSnapshotResponse(error_code=INVALID_REQUEST.code)
        asked = request.topics[0].partitions[0]
        error = self._quorum.check_fetch(Epoch(asked.current_leader_epoch))
        if error is not NONE:
            return self._piece(asked, error)
        if request.replica_id >= 0:
            self._quorum.replica_fetched(ReplicaKey(NodeId(request.replica_id), asked.replica_directory_id), None)
        wanted = SnapshotId(Offset(asked.snapshot_id.end_offset), Epoch(asked.snapshot_id.epoch))
        if wanted not in self._log.snapshots:
            return self._piece(asked, SNAPSHOT_NOT_FOUND)
        path = f"{self._log.directory}/{wanted.file_name}"
        max_bytes = min(max(request.max_bytes, 1), _PIECE_BYTES_MAX)
        try:
            size, data = await self._offload.call(_read_piece, self._files, path, asked.position, max_bytes)
        except OSError:
            return self._piece(asked, SNAPSHOT_NOT_FOUND)
        if not 0 <= asked.position < size:
            return self._piece(asked, POSITION_OUT_OF_RANGE)
        return self._piece(asked, NONE, size, data)

    def _piece(
        self, asked: FetchSnapshotRequest.PartitionSnapshot, error: ErrorCode, size: int = 0, data: bytes = b""
    ) -> FetchSnapshotResponse:
        now = self._quorum.leader_now
        part = FetchSnapshotResponse.PartitionSnapshot(
            error_code=error.code,
            snapshot_id=FetchSnapshotResponse.SnapshotId(
                end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch
            ),
            current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(leader_id=now.leader, leader_epoch=now.epoch),
            size=size,
            position=asked.position,
            unaligned_records=data,
        )
        return FetchSnapshotResponse(
            topics=[FetchSnapshotResponse.TopicSnapshot(name=METADATA_TOPIC, partitions=[part])],
            node_endpoints=endpoints(FetchSnapshotResponse.NodeEndpoint, now),
        )


def _read_piece(files: Files, path: str, position: int, max_bytes: int) -> tuple[int, bytes]:
    """(size of the file, bytes from `position` on)."""
    file = files.open(path, writable=False)
    try:
        size = file.size()
        return size, file.pread(max_bytes, position) if 0 <= position < size else b""
    finally:
        file.close()
