"""Ends transactions in the partitions that this node leads: a marker in each, and word to who keeps state by it.

A coordinator whose records lie in a partition has heard of its marker in the same step that writes it, so that whoever
is shown that coordinator's state after the reply sees what the transaction has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from penstock.replication.acks import ALL_IN_SYNC, holds

if TYPE_CHECKING:
    from penstock.model.ids import Millis, Offset
    from penstock.model.ports import Clock
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.producing.acks import AcksLine

Wanted = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
Place = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class Marked(Protocol):
    """Whoever keeps state by the markers of one topic."""

    def __call__(self, index: int, producer_id: int, *, committed: bool, end: Offset) -> None:
        """A marker was written to partition `index`, which ends at `end` now."""


class MarkerDriver:
    """The door behind the WriteTxnMarkers handler, and for a coordinator of transactions on this node."""

    def __init__(self, partitions: PartitionDriver, clock: Clock, acks: AcksLine) -> None:
        self._partitions, self._clock, self._acks = partitions, clock, acks
        self._told: dict[str, Marked] = {}

    def tell(self, topic: str, marked: Marked) -> None:
        """`marked` hears of every marker in `topic` from now on."""
        self._told[topic] = marked

    def write(
        self, request: WriteTxnMarkersRequest, timeout_ms: int
    ) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
        """Writes all markers, then waits until they are on all replicas in sync. Results are by producer id."""
        now = self._clock.now_ms()
        laid_out = _LaidOut()
        awaited: list[tuple[Hosted, Offset]] = []
        places: list[Place] = []
        for marker in request.markers:
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    place = laid_out.place(marker.producer_id, topic.name, index)
                    written = self._write(marker, topic.name, index, place, now)
                    if written is not None and not holds(*written, ALL_IN_SYNC):
                        awaited.append(written)
                        places.append(place)
        if not awaited:
            return laid_out.response
        return self._wait(laid_out.response, awaited, places, timeout_ms)

    @staticmethod
    def refuse_all(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
        """The same error in every partition."""
        laid_out = _LaidOut()
        for marker in request.markers:
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    laid_out.place(marker.producer_id, topic.name, index).error_code = error.code
        return laid_out.response

    def _write(self, marker: Wanted, topic: str, index: int, place: Place, now: Millis) -> tuple[Hosted, Offset] | None:
        try:
            hosted = self._find(topic, index)
            if marker.producer_id < 0 or marker.producer_epoch < 0:
                raise Refused(UNKNOWN_SERVER_ERROR, "a marker is of a producer and an epoch")
            ticket = hosted.write_marker(
                marker.producer_id,
                marker.producer_epoch,
                commits=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                now=now,
            )
        except Refused as refusal:
            place.error_code = refusal.error.code
            return None
        except StorageFailed as failure:
            self._partitions.storage_failed(failure)
            place.error_code = KAFKA_STORAGE_ERROR.code
            return None
        told = self._told.get(topic)
        if told is not None:
            told(index, marker.producer_id, committed=marker.transaction_result, end=ticket.end)
        return hosted, ticket.end

    def _find(self, topic: str, index: int) -> Hosted:
        """A partition that has no replica here, or none that can be written, is told as unknown: look it up again."""
        try:
            hosted = self._partitions.named(topic, index)
        except Refused as refusal:
            raise Refused(UNKNOWN_TOPIC_OR_PARTITION, refusal.why) from refusal
        if hosted.log is None:
            raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"the log directory of {hosted.name} is offline on this broker")
        return hosted

    def _wait(
        self,
        response: WriteTxnMarkersResponse,
        awaited: list[tuple[Hosted, Offset]],
        places: list[Place],
        timeout_ms: int,
    ) -> Awaitable[WriteTxnMarkersResponse]:
        answer: asyncio.Future[WriteTxnMarkersResponse] = asyncio.get_running_loop().create_future()

        def answered(errors: list[ErrorCode]) -> WriteTxnMarkersResponse:
            for place, error in zip(places, errors, strict=True):
                if error is not NONE:
                    place.error_code = error.code
            return response

        def ready() -> None:
            waited.outcome()
            if not answer.done():
                answer.set_result(response)

        waited = self._acks.wait(awaited, ALL_IN_SYNC, timeout_ms, answered)
        waited.when_ready = ready
        return answer


class _LaidOut:
    """A reply that grows: one result for each producer, however many markers it has."""

    def __init__(self) -> None:
        self.response = WriteTxnMarkersResponse()
        self._results: dict[int, Result] = {}
        self._topics: dict[tuple[int, str], TopicResult] = {}

    def place(self, producer_id: int, topic: str, index: int) -> Place:
        """Where the outcome in one partition is told."""
        result = self._results.get(producer_id)
        if result is None:
            result = self._results[producer_id] = Result(producer_id=producer_id)
            self.response.markers.append(result)
        told = self._topics.get((producer_id, topic))
        if told is None:
            told = self._topics[producer_id, topic] = TopicResult(name=topic)
            result.topics.append(told)
        place = Place(partition_index=index, error_code=NONE.code)
        told.partitions.append(place)
        return place
