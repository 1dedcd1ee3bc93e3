"""Runs produces: prepare (may wait), write every partition with nothing in between, then wait for what acks promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.model.errors import (
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    ErrorCode,
    Refused,
    StorageFailed,
    error_of,
)
from penstock.model.ids import NodeId
from penstock.protocol.messages.produce import ProduceResponse
from penstock.replication.admission import Admitted, RefusedRecords, admit, rebuild
from penstock.server.cluster_view import INTERNAL_TOPICS
from penstock.server.context import Later

if TYPE_CHECKING:
    from penstock.model.ids import Millis
    from penstock.model.ports import Clock, Offload
    from penstock.protocol.messages.produce import ProduceRequest
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.storage.tickets import Ticket

Answer = ProduceResponse.PartitionProduceResponse
_LEADERS_SINCE = 10
_BY_ID_SINCE = 13
_LOG_APPEND_TIME = "LogAppendTime"


class _Piece:
    """One partition of one produce on its way through prepare, write and wait."""

    __slots__ = ("admitted", "answer", "hosted", "ticket", "topic")

    def __init__(self, answer: Answer, topic: Any) -> None:
        self.answer, self.topic = answer, topic
        self.hosted: Hosted | None = None
        self.admitted: Admitted | None = None
        self.ticket: Ticket | None = None

    def refuse(self, error: ErrorCode, why: str = "") -> None:
        self.answer.error_code, self.answer.base_offset = error.code, -1
        self.answer.log_append_time_ms = self.answer.log_start_offset = -1
        self.answer.error_message = why or None


class ProduceDriver:
    """The door behind the Produce handler. Counts what it took in, for the metrics page."""

    def __init__(self, partitions: PartitionDriver, clock: Clock, offload: Offload) -> None:
        self._partitions, self._clock, self._offload = partitions, clock, offload
        self.requests = self.batches = self.bytes_in = self.records_in = self.refused = 0

    def produce(
        self,
        request: ProduceRequest,
        version: int,
        allowed: Callable[[str], bool],
        *,
        internal_too: bool = False,
        listener: str = "",
    ) -> ProduceResponse | Later | Coroutine[Any, Any, ProduceResponse | Later]:
        """`internal_too` lets the caller write into the topics that coordinators live in.

        `listener` is the one the client came by: it is told where to find leaders on it.
        """
        self.requests += 1
        now = self._clock.now_ms()
        response, pieces = ProduceResponse(), []
        rebuilds = False
        for topic in request.topic_data:
            result = ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            response.responses.append(result)
            for data in topic.partition_data:
                answer = Answer(index=data.index)
                result.partition_responses.append(answer)
                piece = _Piece(answer, topic)
                pieces.append(piece)
                self._prepare(piece, topic, data, version, allowed, internal_too, now)
                rebuilds = rebuilds or (piece.admitted is not None and piece.admitted.needs_rebuild)
        names_leaders = listener if version >= _LEADERS_SINCE else ""
        if rebuilds:
            return self._after_rebuild(request, response, pieces, names_leaders)
        return self._write_all(request, response, pieces, now, names_leaders)

    def refuse_all(self, request: ProduceRequest, error: ErrorCode) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                ProduceResponse.TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        Answer(index=data.index, error_code=error.code, base_offset=-1) for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    @staticmethod
    def failure_of(response: ProduceResponse) -> str | None:
        """The first error in a reply that nobody will be sent."""
        for topic in response.responses:
            for answer in topic.partition_responses:
                if answer.error_code:
                    return f"{topic.name}-{answer.index}: {error_of(answer.error_code).name}"
        return None

    def _prepare(
        self,
        piece: _Piece,
        topic: Any,
        data: Any,
        version: int,
        allowed: Callable[[str], bool],
        internal_too: bool,
        now: Millis,
    ) -> None:
        try:
            piece.hosted = hosted = self._find(topic, data.index, version, allowed)
            if hosted.name.topic in INTERNAL_TOPICS and not internal_too:
                raise Refused(INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {hosted.name.topic}")
            piece.admitted = admit(data.records, settings=hosted.settings, now=now, api_version=version)
        except Refused as refusal:
            self._refuse(piece, refusal)

    def _find(self, topic: Any, index: int, version: int, allowed: Callable[[str], bool]) -> Hosted:
        """The partition, for those who may write to it. Who may not is not told whether a name exists."""
        if version >= _BY_ID_SINCE:
            hosted = self._partitions.by_id(topic.topic_id, index)
            if not allowed(hosted.name.topic):
                raise Refused(TOPIC_AUTHORIZATION_FAILED)
            return hosted
        if not allowed(topic.name):
            raise Refused(TOPIC_AUTHORIZATION_FAILED)
        return self._partitions.named(topic.name, index)

    def _refuse(self, piece: _Piece, refusal: Refused) -> None:
        self.refused += 1
        piece.admitted = None
        piece.refuse(refusal.error, refusal.why)
        if isinstance(refusal, RefusedRecords):
            piece.answer.record_errors = [
                ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=why)
                for index, why in refusal.record_errors
            ]

    def _name_leaders(self, response: ProduceResponse, pieces: list[_Piece], listener: str) -> None:
        """Tells who leads the partitions that were not written here and where, so that the client need not ask."""
        leaders: dict[int, None] = {}
        for piece in pieces:
            answer = piece.answer
            if answer.error_code == NOT_LEADER_OR_FOLLOWER.code:
                leader, epoch = self._partitions.leader_of(piece.topic.name, piece.topic.topic_id, answer.index)
                answer.current_leader = ProduceResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                leaders[leader] = None
        for leader in leaders:
            at = self._partitions.neighbours.reachable(NodeId(leader), listener)
            if at is not None:
                response.node_endpoints.append(
                    ProduceResponse.NodeEndpoint(node_id=leader, host=at.host, port=at.port, rack=at.rack)
                )

    async def _after_rebuild(
        self, request: ProduceRequest, response: ProduceResponse, pieces: list[_Piece], listener: str
    ) -> ProduceResponse | Later:
        """Recompression takes longer than the loop may be held, so it runs beside it."""
        now = self._clock.now_ms()
        for piece in pieces:
            if piece.admitted is not None and piece.admitted.needs_rebuild and piece.hosted is not None:
                try:
                    piece.admitted = await self._offload.call(rebuild, piece.admitted, piece.hosted.settings, now)
                except Refused as refusal:
                    self._refuse(piece, refusal)
        return self._write_all(request, response, pieces, now, listener)

    def _write_all(
        self, request: ProduceRequest, response: ProduceResponse, pieces: list[_Piece], now: Millis, listener: str
    ) -> ProduceResponse | Later:
        acks, waiting, refused = request.acks, [], False
        for piece in pieces:
            if piece.admitted is not None:
                self._write(piece, acks, now)
                if piece.ticket is not None and acks and not _settled(piece, acks):
                    waiting.append(piece)
            refused = refused or piece.ticket is None
        if refused and listener:
            self._name_leaders(response, pieces, listener)
        if not waiting:
            return response
        return Later(self._wait(response, waiting, acks, request.timeout_ms, listener))

    def _write(self, piece: _Piece, acks: int, now: Millis) -> None:
        hosted, admitted, answer = piece.hosted, piece.admitted, piece.answer
        assert hosted is not None, "only admitted pieces are written"
        assert admitted is not None, "only admitted pieces are written"
        try:
            ticket = piece.ticket = hosted.append(admitted.batch, admitted.header, acks, now)
        except Refused as refusal:
            self._refuse(piece, refusal)
            return
        except StorageFailed as failure:
            self._partitions.storage_failed(failure)
            self._refuse(piece, Refused(KAFKA_STORAGE_ERROR, str(failure)))
            return
        self.batches += 1
        self.bytes_in += admitted.header.size
        self.records_in += admitted.header.record_count
        answer.error_code, answer.base_offset = NONE.code, ticket.base
        # Of a duplicate, the time of the original.
        append_time = hosted.settings.message_timestamp_type == _LOG_APPEND_TIME
        answer.log_append_time_ms = ticket.timestamp if append_time else -1
        answer.log_start_offset = hosted.require_log().log_start

    def _wait(
        self, response: ProduceResponse, waiting: list[_Piece], acks: int, timeout_ms: int, listener: str
    ) -> asyncio.Future[ProduceResponse]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ProduceResponse] = loop.create_future()
        left = dict.fromkeys(waiting)

        def settled(piece: _Piece) -> None:
            # Concluded at once: by the time the last one is settled this node may lead again, with another log.
            if piece in left:
                del left[piece]
                self._conclude(piece, acks)
                if not left:
                    finish()

        def finish() -> None:
            timer.cancel()
            for piece in left:
                self._conclude(piece, acks)
            left.clear()
            if not future.done():
                if listener and any(piece.answer.error_code for piece in waiting):
                    self._name_leaders(response, waiting, listener)
                future.set_result(response)

        timer = loop.call_later(max(0, timeout_ms) / 1_000, finish)
        for piece in waiting:
            assert piece.hosted is not None
            assert piece.ticket is not None
            if acks == 1:
                piece.hosted.when_flushed(piece.ticket.end, partial(settled, piece))
            else:
                piece.hosted.when_committed(piece.ticket.end, partial(settled, piece))
        return future

    @staticmethod
    def _conclude(piece: _Piece, acks: int) -> None:
        """What to tell the producer now that its batch is committed, or will not be in time."""
        hosted = piece.hosted
        assert hosted is not None
        state = hosted.state
        if not state.leading:
            piece.refuse(NOT_LEADER_OR_FOLLOWER)
        elif hosted.log is None:
            piece.refuse(KAFKA_STORAGE_ERROR)
        elif not _settled(piece, acks):
            piece.refuse(REQUEST_TIMED_OUT)
        elif acks == -1 and len(state.maximal_isr) < state.effective_min_isr:
            piece.refuse(NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def _settled(piece: _Piece, acks: int) -> bool:
    """Whether what `acks` promises holds already."""
    hosted, ticket = piece.hosted, piece.ticket
    assert hosted is not None
    assert ticket is not None
    if acks == -1:
        return hosted.state.high_watermark >= ticket.end
    return not hosted.syncs_before_ack or hosted.log is None or hosted.log.flushed >= ticket.end
