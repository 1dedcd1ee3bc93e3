"""Produce (0), versions 3-13. Appends record batches to partitions this broker leads.

Behaviour: every partition is written before any is waited for. acks=0 is never answered, but a failure closes the
connection so that the client notices; acks=1 is answered after the local write, acks=-1 once the batch is committed.
Internal topics are for coordinators and for the client id of Kafka's admin tools alone.
Notes: advertised from 0 because librdkafka needs to see that (older requests are refused); v7 zstd; v8 errors per
record; v10 tells the current leader and where it is; v13 names topics by id.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from penstock.kernels import read_plain_produce
from penstock.model.errors import INVALID_REQUIRED_ACKS, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from penstock.server.context import NO_REPLY, Disconnect, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.produce import ProduceRequest
    from penstock.server.context import Context, Outcome

ACKS = (-1, 0, 1)
ADMIN_CLIENT = "__admin_client"
"""The client id under which Kafka's own tools may write into internal topics."""


def handle(ctx: Context, request: ProduceRequest) -> Outcome:
    produces = ctx.node.produces

    def allowed(topic: str) -> bool:
        return ctx.allow(Operation.WRITE, ResourceType.TOPIC, topic)

    if request.acks not in ACKS:
        return produces.refuse_known(request, ctx.api_version, allowed, INVALID_REQUIRED_ACKS)
    transactional_id = request.transactional_id
    if transactional_id is not None and not ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return produces.refuse_all(request, TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    outcome = produces.produce(
        request,
        ctx.api_version,
        allowed,
        internal_too=ctx.client_id == ADMIN_CLIENT,
        listener=ctx.listener.name,
    )
    if request.acks == 0:
        return _unanswered(produces, outcome)
    return outcome


def handle_plain(ctx: Context, frame: bytearray, position: int, correlation_id: int) -> Outcome:
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
    if request.acks == 0 and outcome is not None and outcome.__class__ is not bytes:
        return _unanswered(produces, outcome)
    return outcome if request.acks or outcome is None else NO_REPLY


def _unanswered(produces: Any, outcome: Outcome) -> Outcome:
    if isinstance(outcome, Awaitable):
        return _unanswered_later(produces, outcome)
    failure = produces.failure_of(outcome)
    if failure is not None:
        raise Disconnect(f"a produce with acks=0 failed: {failure}")
    return NO_REPLY


async def _unanswered_later(produces: Any, outcome: Awaitable[Outcome]) -> Outcome:
    """A batch that has to be packed anew first; nobody waits for it but the next request."""
    return _unanswered(produces, await outcome)
