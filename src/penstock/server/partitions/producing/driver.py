"""Runs produces: prepare (may wait), write every partition with nothing in between, then wait for what acks promise."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.model.errors import (
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    ErrorCode,
    Refused,
    StorageFailed,
    error_of,
)
from penstock.model.ids import INTERNAL_TOPICS, NodeId
from penstock.protocol.batch import is_transactional
from penstock.protocol.messages.produce import ProduceResponse
from penstock.replication.acks import holds
from penstock.replication.admission import Admitted, RefusedRecords, admit, rebuild
from penstock.replication.verifying import VerifyMode, produce_mode
from penstock.server.doors import Later
from penstock.server.partitions.producing.acks import AcksLine
from penstock.server.partitions.producing.markers import MarkerDriver
from penstock.server.partitions.producing.plain import BY_ID_SINCE, LEADERS_SINCE, PlainProduces, Write

if TYPE_CHECKING:
    from penstock.model.ids import Millis, Offset
    from penstock.model.ports import Clock, Offload
    from penstock.protocol.messages.produce import ProduceRequest
    from penstock.protocol.wire import Buffer
    from penstock.server.partitions.hosted import Guard, Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.producing.transactions import Opening, Transactions
    from penstock.storage.tickets import Ticket

Answer = ProduceResponse.PartitionProduceResponse
_LOG_APPEND_TIME = "LogAppendTime"


class _Piece:
    """One partition of one produce on its way through prepare, write and wait."""

    __slots__ = ("admitted", "answer", "guard", "hosted", "ticket", "topic")

    def __init__(self, answer: Answer, topic: ProduceRequest.TopicProduceData) -> None:
        self.answer, self.topic = answer, topic
        self.hosted: Hosted | None = None
        self.admitted: Admitted | None = None
        self.guard: Guard | None = None  # only of a batch that is part of a transaction
        self.ticket: Ticket | None = None

    def refuse(self, error: ErrorCode, why: str = "") -> None:
        self.answer.error_code, self.answer.base_offset = error.code, -1
        self.answer.log_append_time_ms = self.answer.log_start_offset = -1
        self.answer.error_message = why or None


class ProduceDriver:
    """The door behind the Produce handler. Counts what it took in at its topics, for the metrics page."""

    def __init__(self, partitions: PartitionDriver, clock: Clock, offload: Offload) -> None:
        self._partitions, self._clock, self._offload = partitions, clock, offload
        self.acks = AcksLine()
        self.plain = PlainProduces(self, partitions, clock)
        self.markers = MarkerDriver(partitions, clock, self.acks)
        self.refused_elsewhere = 0  # batches for topics that are not here
        self.transactions: Transactions | None = None
        """Without it batches of transactions are refused."""

    def produce(
        self,
        request: ProduceRequest,
        version: int,
        allowed: Callable[[str], bool],
        *,
        internal_too: bool = False,
        listener: str = "",
    ) -> ProduceResponse | Later | Coroutine[object, None, ProduceResponse | Later]:
        """`internal_too` lets the caller write into the topics that coordinators live in.

        `listener` is the one the client came by: it is told where to find leaders on it.
        """
        now = self._clock.now_ms()
        response, pieces = _laid_out(request)
        records = (data.records for topic in request.topic_data for data in topic.partition_data)
        transactional = self.transactions is not None and request.transactional_id is not None
        for piece, batch in zip(pieces, records, strict=True):
            self._prepare(piece, batch, version, allowed, internal_too, now, transactional)
        rebuilds = any(piece.admitted is not None and piece.admitted.needs_rebuild for piece in pieces)
        names_leaders = listener if version >= LEADERS_SINCE else ""
        if transactional:
            return self._produce_transactional(request, version, response, pieces, now, names_leaders, rebuilds)
        if rebuilds:
            return self._after_rebuild(request, response, pieces, names_leaders)
        return self._write_all(request, response, pieces, now, names_leaders)

    # -- transactions

    def _produce_transactional(
        self,
        request: ProduceRequest,
        version: int,
        response: ProduceResponse,
        pieces: list[_Piece],
        now: Millis,
        listener: str,
        rebuilds: bool,
    ) -> ProduceResponse | Later | Coroutine[object, None, ProduceResponse | Later]:
        """Batches that go on with their transactions are written at once; others need their coordinator's leave."""
        assert self.transactions is not None, "transactions are served"
        theirs = [piece for piece in pieces if _is_transactional(piece)]
        if len({_producer_of(piece) for piece in theirs}) > 1:
            return self.refuse_all(request, INVALID_PRODUCER_ID_MAPPING)
        mode = produce_mode(version)
        opening = self.transactions.opening(mode)
        asking = [piece for piece in theirs if self._must_ask(piece, opening)]
        if asking or rebuilds:
            return self._after_leave(request, response, pieces, asking, mode, listener)
        return self._write_all(request, response, pieces, now, listener)

    def _must_ask(self, piece: _Piece, opening: Opening) -> bool:
        assert piece.hosted is not None, "only admitted pieces are written"
        assert piece.admitted is not None, "only admitted pieces are written"
        try:
            header = piece.admitted.header
            piece.guard, asks = opening.begin(
                piece.hosted, header.producer_id, header.producer_epoch, header.base_sequence
            )
        except Refused as refusal:
            self._refuse(piece, refusal)
            return False
        return asks

    async def _after_leave(
        self,
        request: ProduceRequest,
        response: ProduceResponse,
        pieces: list[_Piece],
        asking: list[_Piece],
        mode: VerifyMode,
        listener: str,
    ) -> ProduceResponse | Later:
        await self._rebuild(pieces)
        asking = [piece for piece in asking if piece.admitted is not None]
        if asking:
            await self._ask_leave(request, asking, mode)
        return self._write_all(request, response, pieces, self._clock.now_ms(), listener)

    async def _ask_leave(self, request: ProduceRequest, asking: list[_Piece], mode: VerifyMode) -> None:
        assert self.transactions is not None, "transactions are served"
        assert request.transactional_id is not None, "a transaction has a name"
        places = [piece.hosted.name for piece in asking if piece.hosted is not None]
        producer_id, producer_epoch = _producer_of(asking[0])
        told = await self.transactions.agreed(request.transactional_id, producer_id, producer_epoch, places, mode)
        for piece, place in zip(asking, places, strict=True):
            error = told[place]
            if error is not NONE:
                self._refuse(piece, Refused(error, f"{place} is not let into the transaction"))

    # -- all the others

    def go_on(
        self,
        request: ProduceRequest,
        writes: Sequence[Write],
        tickets: Sequence[Ticket],
        failure: Refused | StorageFailed,
        now: Millis,
        listener: str,
    ) -> ProduceResponse | Later:
        """Ends a plain produce from where a log refused a batch; `tickets` are of those that were written before it."""
        response, pieces = _laid_out(request)
        for piece, (hosted, header, batch) in zip(pieces, writes, strict=True):
            piece.hosted, piece.admitted = hosted, Admitted(batch, header)
        for piece, ticket in zip(pieces, tickets, strict=False):
            _written(piece, ticket)
        self._failed(pieces[len(tickets)], failure)
        return self._write_all(request, response, pieces, now, listener)

    def take_back(
        self,
        request: ProduceRequest,
        writes: Sequence[Write],
        tickets: Sequence[Ticket],
        refusals: Mapping[tuple[Hosted, Offset], ErrorCode],
        listener: str,
    ) -> ProduceResponse:
        """The reply to a plain produce when some batches were written but did not become what acks promised."""
        response, pieces = _laid_out(request)
        for piece, (hosted, _, _), ticket in zip(pieces, writes, tickets, strict=True):
            piece.hosted = hosted
            _written(piece, ticket)
            error = refusals.get((hosted, ticket.end))
            if error is not None:
                piece.refuse(error)
        if listener:
            self._name_leaders(response, pieces, listener)
        return response

    def refuse_all(self, request: ProduceRequest, error: ErrorCode) -> ProduceResponse:
        response, pieces = _laid_out(request)
        for piece in pieces:
            piece.refuse(error)
        return response

    def refuse_known(
        self, request: ProduceRequest, version: int, allowed: Callable[[str], bool], error: ErrorCode
    ) -> ProduceResponse:
        """Refuses with `error` what could be written; what is not here is told so first, as in Kafka's order."""
        response, pieces = _laid_out(request)
        for piece in pieces:
            try:
                self._find(piece.topic, piece.answer.index, version, allowed)
                piece.refuse(error)
            except Refused as refusal:
                self._refuse(piece, refusal)
        return response

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
        records: Buffer | None,
        version: int,
        allowed: Callable[[str], bool],
        internal_too: bool,
        now: Millis,
        transactional: bool,
    ) -> None:
        try:
            piece.hosted = hosted = self._find(piece.topic, piece.answer.index, version, allowed)
            if hosted.name.topic in INTERNAL_TOPICS and not internal_too:
                raise Refused(INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {hosted.name.topic}")
            piece.admitted = admit(
                records,
                settings=hosted.settings,
                now=now,
                api_version=version,
                transactions_served=transactional,
            )
        except Refused as refusal:
            self._refuse(piece, refusal)

    def _find(
        self, topic: ProduceRequest.TopicProduceData, index: int, version: int, allowed: Callable[[str], bool]
    ) -> Hosted:
        """The partition, for those who may write to it. Who may not is not told whether a name exists."""
        if version >= BY_ID_SINCE:
            hosted = self._partitions.by_id(topic.topic_id, index)
            if not allowed(hosted.name.topic):
                raise Refused(TOPIC_AUTHORIZATION_FAILED)
            return hosted
        if not allowed(topic.name):
            raise Refused(TOPIC_AUTHORIZATION_FAILED)
        return self._partitions.named(topic.name, index)

    def _refuse(self, piece: _Piece, refusal: Refused) -> None:
        if piece.hosted is not None:
            piece.hosted.traffic.refused_in += 1
        else:
            self.refused_elsewhere += 1
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
        await self._rebuild(pieces)
        return self._write_all(request, response, pieces, now, listener)

    async def _rebuild(self, pieces: list[_Piece]) -> None:
        now = self._clock.now_ms()
        for piece in pieces:
            if piece.admitted is not None and piece.admitted.needs_rebuild and piece.hosted is not None:
                try:
                    piece.admitted = await self._offload.call(rebuild, piece.admitted, piece.hosted.settings, now)
                except Refused as refusal:
                    self._refuse(piece, refusal)

    def _write_all(
        self, request: ProduceRequest, response: ProduceResponse, pieces: list[_Piece], now: Millis, listener: str
    ) -> ProduceResponse | Later:
        acks, waiting, refused = request.acks, [], False
        for piece in pieces:
            if piece.admitted is not None and piece.ticket is None:
                self._write(piece, acks, now)
            if piece.ticket is None:
                refused = True
            elif piece.hosted is not None and not holds(piece.hosted, piece.ticket.end, acks):
                waiting.append(piece)
        if refused and listener:
            self._name_leaders(response, pieces, listener)
        if not waiting:
            return response
        return self._wait(response, waiting, acks, request.timeout_ms, listener)

    def _write(self, piece: _Piece, acks: int, now: Millis) -> None:
        hosted, admitted = piece.hosted, piece.admitted
        assert hosted is not None, "only admitted pieces are written"
        assert admitted is not None, "only admitted pieces are written"
        try:
            if piece.guard is None:
                ticket = hosted.append(admitted.batch, admitted.header, acks, now)
            else:
                ticket = hosted.append_transactional(admitted.batch, admitted.header, acks, now, piece.guard)
        except (Refused, StorageFailed) as failure:
            self._failed(piece, failure)
            return
        traffic = hosted.traffic
        traffic.batches_in += 1
        traffic.bytes_in += admitted.header.size
        traffic.records_in += admitted.header.record_count
        _written(piece, ticket)

    def _failed(self, piece: _Piece, failure: Refused | StorageFailed) -> None:
        if isinstance(failure, StorageFailed):
            self._partitions.storage_failed(failure)
            failure = Refused(KAFKA_STORAGE_ERROR, str(failure))
        self._refuse(piece, failure)

    def _wait(
        self, response: ProduceResponse, waiting: list[_Piece], acks: int, timeout_ms: int, listener: str
    ) -> Later:
        def answered(errors: list[ErrorCode]) -> ProduceResponse:
            for piece, error in zip(waiting, errors, strict=True):
                if error is not NONE:
                    piece.refuse(error)
            if listener and any(error is not NONE for error in errors):
                self._name_leaders(response, waiting, listener)
            return response

        awaited = [(piece.hosted, piece.ticket.end) for piece in waiting if piece.hosted and piece.ticket]
        return self.acks.wait(awaited, acks, timeout_ms, answered)


def _laid_out(request: ProduceRequest) -> tuple[ProduceResponse, list[_Piece]]:
    """A reply with a place for every partition of a request, and the pieces that fill the places, in their order."""
    response, pieces = ProduceResponse(), []
    for topic in request.topic_data:
        result = ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(result)
        for data in topic.partition_data:
            answer = Answer(index=data.index)
            result.partition_responses.append(answer)
            pieces.append(_Piece(answer, topic))
    return response, pieces


def _is_transactional(piece: _Piece) -> bool:
    """Whether there is something to be verified. A batch that names no producer is of nobody's transaction."""
    if piece.admitted is None:
        return False
    header = piece.admitted.header
    return header.producer_id >= 0 and is_transactional(header.attributes)


def _producer_of(piece: _Piece) -> tuple[int, int]:
    assert piece.admitted is not None, "only what was admitted has a producer"
    return piece.admitted.header.producer_id, piece.admitted.header.producer_epoch


def _written(piece: _Piece, ticket: Ticket) -> None:
    hosted, answer = piece.hosted, piece.answer
    assert hosted is not None, "it was written somewhere"
    piece.ticket = ticket
    answer.error_code, answer.base_offset = NONE.code, ticket.base
    # Of a duplicate, the time of the original.
    append_time = hosted.settings.message_timestamp_type == _LOG_APPEND_TIME
    answer.log_append_time_ms = ticket.timestamp if append_time else -1
    # Its directory may have gone offline while it was waited for.
    answer.log_start_offset = hosted.log.log_start if hosted.log is not None else -1
