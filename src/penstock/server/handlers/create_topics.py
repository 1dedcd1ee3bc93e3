"""CreateTopics (19), versions 2-7. Creates topics through the controller, or only checks whether it could.

Behaviour: answers when the topics are committed and this node's published image has them, so that a Metadata request
after it finds them; REQUEST_TIMED_OUT when that takes longer than the client allows (the topics may still appear).
Notes: v4 partitions and replication -1 mean the broker's default; v5 returns configs (an empty list, never null, when
they may be seen: the Java client trips over null); v6 may answer THROTTLING_QUOTA_EXCEEDED; v7 topic ids. A name given
twice is refused in all its places.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.model.errors import INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED, ErrorCode, Refused
from penstock.model.ids import METADATA_TOPIC
from penstock.protocol.messages.create_topics import CreateTopicsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.protocol.messages.create_topics import CreateTopicsRequest
    from penstock.server.doors import Context

Result = CreateTopicsResponse.CreatableTopicResult


async def handle(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    anywhere = ctx.may(Operation.CREATE, ResourceType.CLUSTER)
    results: list[Result] = []
    wanted: list[CreateTopicsRequest.CreatableTopic] = []
    for name, times in times_named.items():
        if times > 1:
            results.append(_refused(name, INVALID_REQUEST, "Duplicate topic name."))
        elif name == METADATA_TOPIC:
            results.append(_refused(name, INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."))
        elif not (anywhere or ctx.allow(Operation.CREATE, ResourceType.TOPIC, name)):
            results.append(_refused(name, TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."))
        else:
            wanted.append(by_name[name])
    if not wanted:
        return CreateTopicsResponse(topics=results)
    reply = await _create(ctx, replace(request, topics=wanted))
    return replace(reply, topics=reply.topics + results)


async def _create(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    try:
        return await submitted(ctx, request, CreateTopicsResponse)
    except Refused as refusal:
        return CreateTopicsResponse(
            topics=[_refused(topic.name, refusal.error, refusal.why) for topic in request.topics]
        )


def _refused(name: str, error: ErrorCode, why: str) -> Result:
    return Result(name=name, error_code=error.code, error_message=why or None)
