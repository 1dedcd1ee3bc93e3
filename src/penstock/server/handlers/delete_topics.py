"""DeleteTopics (20), versions 1-6. Deletes topics by name or, from v6 on, by id.

Behaviour: answers when the deletion is committed and published here; the log directories go a little later.
`delete.topic.enable=false` refuses everything: TOPIC_DELETION_DISABLED from v3 on, INVALID_REQUEST before.
Notes: v5 error messages, and may answer THROTTLING_QUOTA_EXCEEDED; v6 topic ids. Who may not describe a topic does not
learn its name from its id; who may describe it, but not delete it, learns that it is not there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
)
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.server.doors import Context

Result = DeleteTopicsResponse.DeletableTopicResult
State = DeleteTopicsRequest.DeleteTopicState

_DISABLED_SINCE: Final = 3
_STATES_SINCE: Final = 6


async def handle(ctx: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    asked = request.topics
    if ctx.api_version < _STATES_SINCE:
        asked = [State(name=name) for name in request.topic_names]
    if not ctx.node.settings.flag("delete.topic.enable"):
        error = TOPIC_DELETION_DISABLED if ctx.api_version >= _DISABLED_SINCE else INVALID_REQUEST
        return DeleteTopicsResponse(
            responses=[_refused(state, error, "Topic deletion is disabled.") for state in asked]
        )
    times = Counter((state.name, state.topic_id) for state in asked)
    anything = ctx.may(Operation.DELETE, ResourceType.CLUSTER)
    results: list[Result] = []
    wanted: list[State] = []
    for (name, topic_id), count in times.items():
        state = State(name=name, topic_id=topic_id)
        refusal = _malformed(state, count) or _denied(ctx, state, anything=anything)
        if refusal is None:
            wanted.append(state)
        else:
            results.append(refusal)
    if not wanted:
        return DeleteTopicsResponse(responses=results)
    reply = await _delete(ctx, wanted, request.timeout_ms)
    return replace(reply, responses=reply.responses + results)


async def _delete(ctx: Context, wanted: list[State], timeout_ms: int) -> DeleteTopicsResponse:
    # The controller may be elsewhere, so the request is one that the client's version can say.
    request = DeleteTopicsRequest(topics=wanted, timeout_ms=timeout_ms)
    if ctx.api_version < _STATES_SINCE:
        names = [state.name for state in wanted if state.name is not None]
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
    try:
        return await submitted(ctx, request, DeleteTopicsResponse)
    except Refused as refusal:
        return DeleteTopicsResponse(responses=[_refused(state, refusal.error, refusal.why) for state in wanted])


def _malformed(state: State, times: int) -> Result | None:
    if state.name is not None and state.topic_id != ZERO_UUID:
        return _refused(state, INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if state.name is None and state.topic_id == ZERO_UUID:
        return _refused(state, INVALID_REQUEST, "Neither topic name nor id were specified.")
    if times > 1:
        return _refused(state, INVALID_REQUEST, f"Duplicate topic {'id' if state.name is None else 'name'}.")
    return None


def _denied(ctx: Context, state: State, *, anything: bool) -> Result | None:
    """Why a topic is not the client's to delete; `anything` tells that every topic is."""
    name = state.name
    if name is None:
        topic = ctx.node.metadata.image.topics.get(state.topic_id)
        if topic is None and not _decides(ctx):
            return None
        if topic is None:
            return _refused(state, UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        name = topic.name
    if anything:
        return None
    if not ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, name):
        return _refused(state, TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if ctx.node.metadata.image.topic(name) is None:
        if not _decides(ctx):
            return None
        if not ctx.may(Operation.DELETE, ResourceType.TOPIC, name):
            # The controller may know it by now, and would not ask again.
            return _refused(state, UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return None
    if not ctx.allow(Operation.DELETE, ResourceType.TOPIC, name):
        return _refused(
            State(name=name, topic_id=state.topic_id), TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
        )
    return None


def _decides(ctx: Context) -> bool:
    """Whether what is missing here is missing: it may be too new for a broker, and then the active controller knows it,
    and asks the authorizer too."""
    return ctx.node.quorum.leading or ctx.listener.for_controllers


def _refused(state: State, error: ErrorCode, why: str) -> Result:
    return Result(name=state.name, topic_id=Uuid(state.topic_id), error_code=error.code, error_message=why or None)
