"""Tells the controller which log directory holds which replica: AssignReplicasToDirs.

With one directory the controller knows without being told. With several the broker chooses, and the controller has to
learn its choice: when a directory fails it must know which replicas went with it. Reports wait a moment, so that a
topic of many partitions makes one request. A directory that fails in that moment, or while the controller is away, is
reported all the same: else its replicas would stay in their ISRs, and lead, for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from penstock.model.errors import NONE, Refused, error_of
from penstock.model.ids import NodeId, PartitionKey, Uuid
from penstock.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.server.controller.channel import Ask

log = logging.getLogger("penstock.lifecycle")

GATHER_MS: Final = 20
RETRY_MS: Final = 1_000
REPLICAS_MAX: Final = 2_000
"""How many replicas one request reports, as in Kafka."""


class DirectoryAssignments:
    """Owns the reports that are still to be made. `locate` gives the directory of a replica, None if it has none."""

    def __init__(
        self,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        ask: Ask,
        locate: Callable[[PartitionKey], Uuid | None],
    ) -> None:
        self._node_id, self._broker_epoch, self._ask, self._locate = node_id, broker_epoch, ask, locate
        self._image: ClusterImage | None = None
        self._pending: dict[PartitionKey, Uuid] = {}
        """Replicas to report, with the directory that each was last seen in."""
        self._reporting: asyncio.Task[None] | None = None

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Looks at what a publication changed; subscribe it after whoever makes the replicas."""
        self._image = image
        for topic_id, indexes in delta.partitions.items():
            for index in indexes:
                self.check(PartitionKey(topic_id, index))

    def check(self, key: PartitionKey) -> None:
        """Reports the replica unless the controller has it where it is; call it when one was made or moved."""
        if self._image is None:
            return
        partition = self._image.partition(*key)
        if partition is None or self._node_id not in partition.replicas:
            return
        actual = self._locate(key)
        if actual is not None and actual != partition.directory_of(self._node_id):
            self._pending[key] = actual
            if self._reporting is None:
                self._reporting = duty(self._report(), name="directory assignments")

    async def close(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)

    async def _report(self) -> None:
        wait_ms = GATHER_MS
        try:
            while self._pending:
                await asyncio.sleep(wait_ms / 1_000)
                wait_ms = GATHER_MS
                found = self._gather()
                if found and not await self._send(found):
                    wait_ms = RETRY_MS
                    self._pending = found | self._pending
        finally:
            self._reporting = None

    def _gather(self) -> dict[PartitionKey, Uuid]:
        """Takes what can be reported off the list; what the controller knows or this node lost just goes."""
        assert self._image is not None, "reports come from an image"
        found: dict[PartitionKey, Uuid] = {}
        for key in list(self._pending):
            partition = self._image.partition(*key)
            seen = self._pending.pop(key)
            actual = self._locate(key) or seen  # a log that is gone went with its directory
            if partition is None or self._node_id not in partition.replicas:
                continue
            if actual != partition.directory_of(self._node_id):
                found[key] = actual
            if len(found) == REPLICAS_MAX:
                break
        return found

    async def _send(self, found: Mapping[PartitionKey, Uuid]) -> bool:
        try:
            reply = await self._ask(self._request(found), 0)
            assert isinstance(reply, AssignReplicasToDirsResponse), "a request is answered with its own reply"
        except Refused as refusal:
            log.warning("directory assignments were refused: %s", refusal)
            return False
        if reply.error_code != NONE.code:
            log.warning("directory assignments were refused: %s", error_of(reply.error_code).name)
        return reply.error_code == NONE.code

    def _request(self, found: Mapping[PartitionKey, Uuid]) -> AssignReplicasToDirsRequest:
        by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
        for key, directory in found.items():
            by_directory.setdefault(directory, {}).setdefault(key.topic_id, []).append(key.partition)
        request = AssignReplicasToDirsRequest
        return request(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                request.DirectoryData(
                    id=directory,
                    topics=[
                        request.TopicData(
                            topic_id=topic_id,
                            partitions=[request.PartitionData(partition_index=index) for index in sorted(indexes)],
                        )
                        for topic_id, indexes in topics.items()
                    ],
                )
                for directory, topics in by_directory.items()
            ],
        )
