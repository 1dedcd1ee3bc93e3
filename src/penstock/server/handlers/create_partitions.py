"""CreatePartitions (37), versions 0-3. Adds partitions to topics through the controller, or only checks.

Behaviour: `count` is the new total and must be larger than the present one. Answers when committed and published here.
Notes: v2 flexible; v3 may answer THROTTLING_QUOTA_EXCEEDED. A name given twice is refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.model.errors import INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED, ErrorCode, Refused
from penstock.protocol.messages.create_partitions import CreatePartitionsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
    from penstock.server.doors import Context

Result = CreatePartitionsResponse.CreatePartitionsTopicResult


async def handle(ctx: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    results: list[Result] = []
    wanted: list[CreatePartitionsRequest.CreatePartitionsTopic] = []
    for name, times in times_named.items():
        if times > 1:
            results.append(_refused(name, INVALID_REQUEST, "Duplicate topic name."))
        elif not ctx.allow(Operation.ALTER, ResourceType.TOPIC, name):
            results.append(_refused(name, TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."))
        else:
            wanted.append(by_name[name])
    if not wanted:
        return CreatePartitionsResponse(results=results)
    reply = await _create(ctx, replace(request, topics=wanted))
    return replace(reply, results=reply.results + results)


async def _create(ctx: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    try:
        return await submitted(ctx, request, CreatePartitionsResponse)
    except Refused as refusal:
        return CreatePartitionsResponse(
            results=[_refused(topic.name, refusal.error, refusal.why) for topic in request.topics]
        )


def _refused(name: str, error: ErrorCode, why: str) -> Result:
    return Result(name=name, error_code=error.code, error_message=why or None)
