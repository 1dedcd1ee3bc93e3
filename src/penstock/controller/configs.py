"""AlterConfigs and IncrementalAlterConfigs: what topics, brokers, groups and client metrics are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.controller.decision import Decision, World
from penstock.controller.index import Key
from penstock.controller.names import check_topic_name
from penstock.metadata.entities import (
    CONFIG_BROKER,
    CONFIG_CLIENT_METRICS,
    CONFIG_GROUP,
    CONFIG_TOPIC,
    PartitionImage,
)
from penstock.metadata.records import VersionedRecord
from penstock.model.config import (
    AlterOp,
    apply_incremental,
    check_resource_name,
    validate_broker_configs,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_topics import ClearElrRecord, PartitionChangeRecord
from penstock.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from penstock.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_MIN_ISR: Final = "min.insync.replicas"


def decide_incremental(world: World, request: IncrementalAlterConfigsRequest) -> Decision:
    """IncrementalAlterConfigs: each resource is changed as a whole or not at all."""

    def after(resource: Any, current: Mapping[str, str]) -> dict[str, str]:
        ops = [(each.name, each.config_operation, each.value) for each in resource.configs]
        return apply_incremental(current, ops, resource.resource_type)

    return _decide(world, request, IncrementalAlterConfigsResponse, after)


def decide_alter(world: World, request: AlterConfigsRequest) -> Decision:
    """AlterConfigs, the old way: what is not named is reset to its default."""

    def after(resource: Any, _current: Mapping[str, str]) -> dict[str, str]:
        ops = [(each.name, AlterOp.SET, each.value) for each in resource.configs]
        return apply_incremental({}, ops, resource.resource_type)

    return _decide(world, request, AlterConfigsResponse, after)


def _decide(
    world: World, request: Any, response: type[Any], after: Callable[[Any, Mapping[str, str]], dict[str, str]]
) -> Decision:
    keys = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    times = Counter(keys)
    reply, records = response(), list[VersionedRecord]()
    for resource, key in zip(request.resources, keys, strict=True):
        result = response.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        reply.responses.append(result)
        try:
            if times[key] > 1:
                raise Refused(INVALID_REQUEST, "the resource stands twice in the request")
            check_resource_name(*key)
            current = world.image.config(*key)
            new = after(resource, current)
            named = [each.name for each in resource.configs]
            _check(world, *key, current, new, named)
            records += _records(world, *key, current, new, named)
        except Refused as refused:
            result.error_code, result.error_message = refused.error.code, refused.why or None
    return Decision([] if request.validate_only else records, reply, "alter configs")


def _check(
    world: World, type: int, name: str, current: Mapping[str, str], new: Mapping[str, str], named: list[str]
) -> None:
    """Refused unless the resource is there and may have these configs."""
    broker = world.settings.broker
    match type:
        case t if t == CONFIG_TOPIC:
            check_topic_name(name)
            validate_topic_configs(new, broker, previous=current)
            if world.image.topic(name) is None:
                raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        case t if t == CONFIG_BROKER:
            validate_broker_configs({key: new[key] for key in named if key in new}, per_broker=bool(name))
            if name and int(name) not in world.image.brokers and int(name) not in world.image.controllers:
                raise Refused(BROKER_ID_NOT_REGISTERED, f"there is no node {name}")
            _check_min_isr(world, name, current, new, named)
        case t if t == CONFIG_GROUP:
            validate_group_configs(new, broker)
        case t if t == CONFIG_CLIENT_METRICS:
            validate_client_metrics_configs(new)


def _check_min_isr(
    world: World, name: str, current: Mapping[str, str], new: Mapping[str, str], named: list[str]
) -> None:
    # AlterConfigs also removes what it does not name.
    removed = _MIN_ISR in current and _MIN_ISR not in new
    if not world.image.elr_enabled or not (_MIN_ISR in named or removed):
        return
    if name:
        raise Refused(INVALID_CONFIG, f"{_MIN_ISR} is one for the whole cluster while eligible leader replicas are on")
    if _MIN_ISR not in new:
        raise Refused(INVALID_CONFIG, f"{_MIN_ISR} cannot be removed while eligible leader replicas are on; set it")


def _records(
    world: World, type: int, name: str, current: Mapping[str, str], new: Mapping[str, str], named: list[str]
) -> list[VersionedRecord]:
    """What leads from `current` to `new`. Brokers get a record also for an unchanged value: it makes them reload."""
    records: list[VersionedRecord] = []
    reset = [key for key in current if key not in new and key not in named]
    for key in [*named, *reset]:
        if current.get(key) != new.get(key) or type == CONFIG_BROKER:
            record = ConfigRecord(resource_type=type, resource_name=name, name=key, value=new.get(key))
            records.append((record, 0))
    if world.image.elr_enabled and current.get(_MIN_ISR) != new.get(_MIN_ISR):
        records += _forget_eligible(world, name if type == CONFIG_TOPIC else "")
    return records


def _forget_eligible(world: World, topic_name: str) -> list[VersionedRecord]:
    """Who is eligible was decided under the old minimum: under a lower one a leader may go on without them.

    Where nobody leads, nothing goes on: those who are eligible there still have everything, and without them the
    partition would have lost its records. Then the others are named one by one.
    """
    topic_id = world.image.ids[topic_name] if topic_name else None

    def is_meant(key: Key) -> bool:
        return topic_id in (None, key[0])

    leaderless = filter(is_meant, world.index.leaderless())
    if not any(_knows_somebody(world.image.topics[of].partitions[index]) for of, index in leaderless):
        return [(ClearElrRecord(topic_name=topic_name), 0)]
    return [
        world.versioned(
            PartitionChangeRecord(topic_id=of, partition_id=index, eligible_leader_replicas=[], last_known_elr=[])
        )
        for of, index in filter(is_meant, world.index.with_eligible())
        if world.image.topics[of].partitions[index].has_leader
    ]


def _knows_somebody(partition: PartitionImage) -> bool:
    return bool(partition.elr or partition.last_known_elr)
