"""Fetches a snapshot of the metadata log from the leader, piece by piece, and has it installed in place of the log.

The pieces go to a file whose name does not count, which is synced, read back and renamed when it is whole. A crash at
any step leaves either the old log or the whole snapshot.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.model.errors import Corrupt, StorageFailed, error_of
from penstock.model.ids import METADATA_TOPIC, Epoch, NodeId
from penstock.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from penstock.server.quorum.snapshot_driver import PARTIAL_SUFFIX, emptied
from penstock.server.quorum.snapshot_file import Checkpoint, SnapshotId, read_checkpoint
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.model.ports import File, Files, Offload
    from penstock.protocol.messages.fetch_snapshot import FetchSnapshotResponse
    from penstock.quorum.fetching import LogPoint, Wish
    from penstock.quorum.state import ReplicaKey
    from penstock.server.peers import Address, Peers

log = logging.getLogger("penstock.quorum")

PURPOSE: Final = "quorum-fetch"
_SNAPSHOT_BYTES_MAX: Final = 4 << 30


class Installs(Protocol):
    """What the quorum driver does with a snapshot."""

    def wish(self) -> Wish | None: ...
    def heard(self, epoch: Epoch, leader: NodeId) -> None: ...
    def still_fetching(self, leader: NodeId, epoch: Epoch) -> None:
        """The leader sent a piece, so it is well."""

    async def install(self, wish: Wish, snapshot: SnapshotId, content: Checkpoint, size: int) -> None:
        """Puts the snapshot of `size` bytes, which is on the disk, in place of the log."""

    def disk_failed(self, failure: StorageFailed) -> None: ...


class _Piece(NamedTuple):
    data: memoryview
    size: int


class SnapshotFetcher:
    """Fetches one snapshot at a time."""

    def __init__(
        self,
        quorum: Installs,
        peers: Peers,
        files: Files,
        offload: Offload,
        directory: str,
        me: ReplicaKey,
        cluster_id: str,
        *,
        request_timeout_ms: int,
        piece_bytes: int,
    ) -> None:
        self._quorum, self._peers, self._files, self._offload = quorum, peers, files, offload
        self._directory, self._me, self._cluster_id = directory, me, cluster_id
        self._timeout_ms, self._piece_bytes = request_timeout_ms, piece_bytes

    async def fetch(self, leader: Address, wish: Wish, point: LogPoint) -> bool:
        """Whether the snapshot was installed."""
        if wish.high_watermark is not None and point.end <= wish.high_watermark:
            log.error("the leader sends a snapshot to offset %d, but %d is committed", point.end, wish.high_watermark)
            return False
        snapshot = SnapshotId(point.end, point.epoch)
        path = f"{self._directory}/{snapshot.file_name}"
        log.info("fetching metadata snapshot %s from %s", snapshot.file_name, leader)
        try:
            whole = await self._download(leader, wish, snapshot, path + PARTIAL_SUFFIX)
            if not whole:
                return False
            data = await self._offload.call(self._files.read, path + PARTIAL_SUFFIX)
            content = read_checkpoint(path, data)
            await self._offload.call(self._files.rename, path + PARTIAL_SUFFIX, path)
            await self._offload.call(self._files.sync_dir, self._directory)
        except OSError as failure:
            self._quorum.disk_failed(StorageFailed(path, f"the snapshot could not be written: {failure}"))
            return False
        except Corrupt as broken:
            log.error("snapshot %s of %s cannot be used: %s", snapshot.file_name, leader, broken)
            return False
        await self._quorum.install(wish, snapshot, content, len(data))
        return True

    async def _download(self, leader: Address, wish: Wish, snapshot: SnapshotId, path: str) -> bool:
        file = await self._offload.call(emptied, self._files, path)
        try:
            whole = await self._fill(leader, wish, snapshot, file)
            if whole:
                await self._offload.call(file.sync)
            return whole
        finally:
            file.close()

    async def _fill(self, leader: Address, wish: Wish, snapshot: SnapshotId, file: File) -> bool:
        position = 0
        while True:
            piece = await self._piece(leader, wish, snapshot, position)
            if piece is None or not piece.data:
                return False
            position += await self._offload.call(file.pwritev, [piece.data], position)
            if position >= piece.size:
                return position == piece.size

    async def _piece(self, leader: Address, wish: Wish, snapshot: SnapshotId, position: int) -> _Piece | None:
        """The next piece; None when there is none, or when another leads by now."""
        asked = FetchSnapshotRequest.PartitionSnapshot(
            current_leader_epoch=wish.epoch,
            snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=snapshot.end, epoch=snapshot.epoch),
            position=position,
            replica_directory_id=self._me.directory,
        )
        request = FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._me.id,
            max_bytes=self._piece_bytes,
            topics=[FetchSnapshotRequest.TopicSnapshot(name=METADATA_TOPIC, partitions=[asked])],
        )
        try:
            reply: FetchSnapshotResponse = await self._peers.ask(
                leader, request, 1, purpose=PURPOSE, timeout_ms=self._timeout_ms
            )
        except LinkError as failure:
            log.info("snapshot %s: %s", snapshot.file_name, failure)
            return None
        if reply.error_code or len(reply.topics) != 1 or len(reply.topics[0].partitions) != 1:
            log.warning("snapshot %s is refused: %s", snapshot.file_name, error_of(reply.error_code).name)
            return None
        part = reply.topics[0].partitions[0]
        if part.current_leader.leader_epoch >= 0:
            self._quorum.heard(Epoch(part.current_leader.leader_epoch), NodeId(part.current_leader.leader_id))
        now = self._quorum.wish()
        if part.error_code:
            log.info("snapshot %s is refused: %s", snapshot.file_name, error_of(part.error_code).name)
            return None
        if now is None or (now.epoch, now.leader) != (wish.epoch, wish.leader):
            return None
        if part.position != position or part.size > _SNAPSHOT_BYTES_MAX:
            log.error("snapshot %s: a piece at %d instead of %d", snapshot.file_name, part.position, position)
            return None
        self._quorum.still_fetching(wish.leader, wish.epoch)
        return _Piece(memoryview(part.unaligned_records), part.size)  # type: ignore[arg-type]  # bytes, as they came in
