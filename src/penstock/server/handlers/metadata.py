"""Metadata (3), versions 0-13. Brokers, topics and partition leaders as this node has published them.

Behaviour: topics that are missing are created when the client and `auto.create.topics.enable` allow it; the reply
then waits for the creation and shows the new topic at once. Brokers are told with their address on the request's
listener.
Notes: v0 an empty list means all topics, from v1 on null does; v1 controller (any live broker: it passes requests
on), racks, internal topics; v2 cluster id; v4 auto-creation is the client's choice; v5 offline replicas; v7 leader
epochs; v8 authorized operations; v10 topic ids in replies, v12 in requests; v13 an error for the whole request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.model.ids import INTERNAL_TOPICS, ZERO_UUID, Uuid
from penstock.protocol.codec import fragment
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.protocol.messages.metadata import MetadataResponse
from penstock.server.doors import OPERATIONS_NOT_ASKED, Operation, ResourceType
from penstock.server.handlers.shared.cluster_view import (
    PartitionViewer,
    addresses,
    any_controller,
    topic_name_problem,
)
from penstock.server.handlers.shared.controller_requests import submitted
from penstock.server.internal_topics import internal_topic, plain_topic

if TYPE_CHECKING:
    from penstock.metadata.entities import TopicImage
    from penstock.protocol.messages.metadata import MetadataRequest
    from penstock.server.doors import Context

Topic = MetadataResponse.MetadataResponseTopic
Partition = MetadataResponse.MetadataResponsePartition

_LISTENER_ERRORS_SINCE: Final = 6
_LEADER_EPOCHS_SINCE: Final = 7
_OPERATIONS_SINCE: Final = 8
_CLUSTER_OPERATIONS: Final = range(8, 11)
_BY_ID_SINCE: Final = 12


def handle(ctx: Context, request: MetadataRequest) -> MetadataResponse | Awaitable[MetadataResponse]:
    if _malformed(ctx, request):
        error = INVALID_REQUEST.code
        topics = [
            Topic(error_code=error, name=each.name or "", topic_id=each.topic_id) for each in request.topics or ()
        ]
        return MetadataResponse(topics=topics, error_code=error)
    if request.topics is None or (ctx.api_version == 0 and not request.topics):
        return _reply(ctx, request, _all_topics(ctx, request))
    ids = [each.topic_id for each in request.topics if each.topic_id != ZERO_UUID]
    if ids:
        # One id makes it a request by ids: names beside it are not looked at.
        return _reply(ctx, request, [_by_id(ctx, request, topic_id) for topic_id in dict.fromkeys(ids)])
    names = dict.fromkeys(each.name for each in request.topics if each.name is not None)
    missing = _creatable(ctx, request, names)
    if missing:
        return _create_then_reply(ctx, request, names, missing)
    return _reply(ctx, request, [_by_name(ctx, request, name, {}) for name in names])


def _malformed(ctx: Context, request: MetadataRequest) -> bool:
    """Versions 10 and 11 have a field for ids that nobody may use yet; later ones need a name or an id."""
    if request.topics is None:
        return False
    if ctx.api_version >= _BY_ID_SINCE:
        return any(each.name is None and each.topic_id == ZERO_UUID for each in request.topics)
    return any(each.name is None or each.topic_id != ZERO_UUID for each in request.topics)


def _reply(ctx: Context, request: MetadataRequest, topics: list[Topic]) -> MetadataResponse:
    found = addresses(ctx)
    reply = MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=address.broker.id, host=address.host, port=address.port, rack=address.broker.rack
            )
            for address in found
        ],
        cluster_id=ctx.node.metadata.cluster_id,
        controller_id=any_controller(ctx, found),
        topics=topics,
    )
    if ctx.api_version in _CLUSTER_OPERATIONS and request.include_cluster_authorized_operations:
        allowed = ctx.may(Operation.DESCRIBE, ResourceType.CLUSTER)
        reply.cluster_authorized_operations = ctx.authorized_operations(ResourceType.CLUSTER) if allowed else 0
    return reply


# Finding topics


def _all_topics(ctx: Context, request: MetadataRequest) -> list[Topic]:
    image = ctx.node.metadata.image
    return [
        _shown(ctx, request, image.topics[image.ids[name]])
        for name in sorted(image.ids)
        if ctx.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]


def _by_id(ctx: Context, request: MetadataRequest, topic_id: Uuid) -> Topic:
    topic = ctx.node.metadata.image.topics.get(topic_id)
    if topic is None:
        return Topic(error_code=UNKNOWN_TOPIC_ID.code, name=None, topic_id=topic_id)
    if not ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        # An id is no secret, the name is.
        return Topic(error_code=TOPIC_AUTHORIZATION_FAILED.code, name=None, topic_id=topic_id)
    return _shown(ctx, request, topic)


def _by_name(ctx: Context, request: MetadataRequest, name: str, refused: dict[str, int]) -> Topic:
    if not ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, name):
        return Topic(error_code=TOPIC_AUTHORIZATION_FAILED.code, name=name)
    topic = ctx.node.metadata.image.topic(name)
    if topic is not None:
        return _shown(ctx, request, topic)
    operations = _operations(ctx, request, name)
    if name in refused:
        return _absent(name, refused[name], operations)
    if topic_name_problem(name):
        return _absent(name, INVALID_TOPIC_EXCEPTION.code, operations)
    if _may_create(ctx, request) and not _allowed_to_create(ctx, name):
        return _absent(name, TOPIC_AUTHORIZATION_FAILED.code)
    return _absent(name, UNKNOWN_TOPIC_OR_PARTITION.code, operations)


def _absent(name: str, error_code: int, operations: int = OPERATIONS_NOT_ASKED) -> Topic:
    return Topic(
        error_code=error_code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=operations,
    )


def _operations(ctx: Context, request: MetadataRequest, name: str) -> int:
    if ctx.api_version >= _OPERATIONS_SINCE and request.include_topic_authorized_operations:
        return ctx.authorized_operations(ResourceType.TOPIC, name)
    return OPERATIONS_NOT_ASKED


def _shown(ctx: Context, request: MetadataRequest, topic: TopicImage) -> Topic:
    """The topic, encoded ahead: many clients ask for the same after a failover, and most of a reply is its topics."""
    operations = _operations(ctx, request, topic.name)
    pieces = ctx.node.metadata.fragments.setdefault(topic.id, {})
    key = (ctx.api_version, ctx.listener.name, operations)
    piece = pieces.get(key)
    if piece is None:
        piece = pieces[key] = fragment(_described(ctx, topic, operations), ctx.api_version)
    return piece


def _described(ctx: Context, topic: TopicImage, operations: int) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=_partitions(ctx, topic),
        topic_authorized_operations=operations,
    )


def _partitions(ctx: Context, topic: TopicImage) -> list[Partition]:
    version = ctx.api_version
    viewer = PartitionViewer(
        ctx.node.metadata.image,
        ctx.listener.name,
        hides_dead=version == 0,
        names_listener=version >= _LISTENER_ERRORS_SINCE,
    )
    shown = []
    for index, partition in enumerate(topic.partitions):
        view = viewer.view(partition)
        shown.append(
            Partition(
                error_code=view.error.code,
                partition_index=index,
                leader_id=view.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(view.replicas),
                isr_nodes=list(view.isr),
                offline_replicas=list(view.offline),
            )
        )
    return shown


# Creating topics

_CREATE_TOPICS: Final = (19, 7)
"""The request that makes them, and the version in which it is passed on."""


def _may_create(ctx: Context, request: MetadataRequest) -> bool:
    return request.allow_auto_topic_creation and ctx.node.settings.flag("auto.create.topics.enable")


def _allowed_to_create(ctx: Context, name: str) -> bool:
    return ctx.may(Operation.CREATE, ResourceType.CLUSTER) or ctx.allow(Operation.CREATE, ResourceType.TOPIC, name)


def _creatable(ctx: Context, request: MetadataRequest, names: Iterable[str]) -> list[str]:
    if not _may_create(ctx, request):
        return []
    image = ctx.node.metadata.image
    return [
        name
        for name in names
        if name not in image.ids
        and not topic_name_problem(name)
        and ctx.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        and _allowed_to_create(ctx, name)
    ]


async def _create_then_reply(
    ctx: Context, request: MetadataRequest, names: Iterable[str], missing: list[str]
) -> MetadataResponse:
    creation = CreateTopicsRequest(
        topics=[_new_topic(ctx, name) for name in missing], timeout_ms=ctx.node.settings.number("request.timeout.ms")
    )
    refused: dict[str, int] = {}
    throttle_ms = 0
    try:
        reply = await submitted(ctx.asking(*_CREATE_TOPICS), creation, CreateTopicsResponse)
    except Refused:
        refused = dict.fromkeys(missing, LEADER_NOT_AVAILABLE.code)
    else:
        # Somebody else may have created it a moment ago; then our image shows it.
        harmless = (NONE.code, TOPIC_ALREADY_EXISTS.code)
        refused = {each.name: _told(each.error_code) for each in reply.topics if each.error_code not in harmless}
        throttle_ms = reply.throttle_time_ms
    answer = _reply(ctx, request, [_by_name(ctx, request, name, refused) for name in names])
    answer.throttle_time_ms = throttle_ms
    return answer


def _told(error_code: int) -> int:
    """A client that asks for metadata knows no quota on topics; it comes again for one that has no leader yet."""
    return LEADER_NOT_AVAILABLE.code if error_code == THROTTLING_QUOTA_EXCEEDED.code else error_code


def _new_topic(ctx: Context, name: str) -> CreateTopicsRequest.CreatableTopic:
    """With the broker's defaults; topics that coordinators live in have settings of their own."""
    return internal_topic(ctx.node.settings, name, len(ctx.node.metadata.image.brokers)) or plain_topic(name)
