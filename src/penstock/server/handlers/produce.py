"""Produce (0), versions 3-13. Appends record batches to partitions this broker leads.

Behaviour: every partition is written before any is waited for. acks=0 is never answered, but a failure closes the
connection so that the client notices; acks=1 is answered after the local write, acks=-1 once the batch is committed.
Internal topics are for coordinators and for the client id of Kafka's admin tools alone; nodes write their audit events
to each other by a client id of their own, and have to be nodes for it (CLUSTER_ACTION). With batches of a transaction a
request needs a transactional id that its client may write to, or is refused whole. Batches that begin their transaction
in a partition wait for its coordinator before anything is written; all are of one producer, or none is written
(INVALID_PRODUCER_ID_MAPPING).
Notes: advertised from 0 because librdkafka needs to see that (older requests are refused); v7 zstd; v8 errors per
record; v10 tells the current leader and where it is; v11 knows TRANSACTION_ABORTABLE; v12 adds partitions to its
transaction by itself; v13 names topics by id.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from penstock.kernels import read_plain_produce
from penstock.model.errors import INVALID_REQUIRED_ACKS, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from penstock.model.ids import AUDIT_TOPIC
from penstock.protocol.batch import claims_transaction
from penstock.server.doors import AUDIT_CLIENT, NO_REPLY, Disconnect, Later, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
    from penstock.server.doors import Context, NoReply, Outcome, PlainOutcome, ProducesDoor

ACKS = (-1, 0, 1)
ADMIN_CLIENT = "__admin_client"
"""The client id under which Kafka's own tools may write into internal topics."""


def handle(ctx: Context, request: ProduceRequest) -> Outcome:
    produces = ctx.node.produces
    is_audit = ctx.client_id == AUDIT_CLIENT and ctx.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)

    def allowed(topic: str) -> bool:
        # Never told as allowed: each record of the audit would cause another.
        if is_audit and topic == AUDIT_TOPIC:
            return True
        return ctx.allow(Operation.WRITE, ResourceType.TOPIC, topic)

    if _has_transactional(request) and not _may_transact(ctx, request.transactional_id):
        refused = produces.refuse_all(request, TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return refused if request.acks else _unanswered(produces, refused)
    if request.acks not in ACKS:
        return produces.refuse_known(request, ctx.api_version, allowed, INVALID_REQUIRED_ACKS)
    outcome = produces.produce(
        request,
        ctx.api_version,
        allowed,
        internal_too=is_audit or ctx.client_id == ADMIN_CLIENT,
        listener=ctx.listener.name,
    )
    if request.acks == 0:
        return _unanswered(produces, outcome)
    return outcome


def handle_plain(ctx: Context, frame: bytearray, position: int, correlation_id: int) -> PlainOutcome:
    request = read_plain_produce(frame, position, ctx.api_version)
    if request is None:
        return None
    produces = ctx.node.produces
    outcome = produces.plain.produce(
        request,
        frame,
        position,
        ctx.api_version,
        lambda topic: ctx.allow(Operation.WRITE, ResourceType.TOPIC, topic),
        correlation_id=correlation_id,
        listener=ctx.listener.name,
    )
    if request.acks or outcome is None:
        return outcome
    return NO_REPLY if isinstance(outcome, bytes) else _unanswered(produces, outcome)


def _has_transactional(request: ProduceRequest) -> bool:
    return any(claims_transaction(data.records) for topic in request.topic_data for data in topic.partition_data)


def _may_transact(ctx: Context, transactional_id: str | None) -> bool:
    if transactional_id is None:
        return False
    return ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def _unanswered(
    produces: ProducesDoor, outcome: ProduceResponse | Later | Awaitable[ProduceResponse | Later]
) -> NoReply | Awaitable[NoReply]:
    """Hangs up where the client cannot be told that its records were lost."""
    if isinstance(outcome, Awaitable):
        return _unanswered_later(produces, outcome)
    assert not isinstance(outcome, Later), "without acks nothing is waited for"
    return _looked_at(produces, outcome)


async def _unanswered_later(produces: ProducesDoor, outcome: Awaitable[ProduceResponse | Later]) -> NoReply:
    """A batch that has to be packed anew first; nobody waits for it but the next request."""
    written = await outcome
    assert not isinstance(written, Later), "without acks nothing is waited for"
    return _looked_at(produces, written)


def _looked_at(produces: ProducesDoor, response: ProduceResponse) -> NoReply:
    failure = produces.failure_of(response)
    if failure is not None:
        raise Disconnect(f"a produce with acks=0 failed: {failure}")
    return NO_REPLY
