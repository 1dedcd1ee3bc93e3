"""Elections that somebody asks for or that are due: ElectLeaders, preferred leaders, unclean leaders."""

from __future__ import annotations

from typing import Final

from penstock.controller.decision import Decision, World
from penstock.controller.elections import Election, plan_change
from penstock.controller.replicas import change_of, places
from penstock.metadata.entities import TopicImage
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_REQUEST,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
)
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

ELECTIONS_MAX: Final = 1_000
"""How many leaders one sweep moves at most: the rest waits for the next sweep, so that brokers can follow."""

_KINDS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def decide_elect(world: World, request: ElectLeadersRequest) -> Decision:
    """ElectLeaders: for the named partitions, or all that need it when none are named."""
    if request.topic_partitions == []:
        return Decision([], ElectLeadersResponse())
    kind = _KINDS.get(request.election_type)
    if kind is None:
        raise Refused(INVALID_REQUEST, f"there is no election of type {request.election_type}")
    reply, records = ElectLeadersResponse(), list[VersionedRecord]()
    if request.topic_partitions is None:
        asked = [(topic.name, list(range(len(topic.partitions)))) for topic in world.image.topics.values()]
    else:
        named: dict[str, dict[int, None]] = {}
        for each in request.topic_partitions:
            named.setdefault(each.topic, {}).update(dict.fromkeys(each.partitions))
        asked = [(name, list(indexes)) for name, indexes in named.items()]
    for name, indexes in asked:
        result = ElectLeadersResponse.ReplicaElectionResult(topic=name)
        for index in indexes:
            error, why = _elect_one(world, name, index, kind, records)
            if request.topic_partitions is None and error == ELECTION_NOT_NEEDED.code:
                continue
            result.partition_result.append(
                ElectLeadersResponse.PartitionResult(partition_id=index, error_code=error, error_message=why)
            )
        if result.partition_result:
            reply.replica_election_results.append(result)
    return Decision(records, reply)


def _elect_one(
    world: World, name: str, index: int, kind: Election, records: list[VersionedRecord]
) -> tuple[int, str | None]:
    try:
        topic = world.image.topic(name)
        if topic is None or topic.get(index) is None:
            raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
        records.append(_elected(world, topic, index, kind))
    except Refused as refused:
        return refused.error.code, refused.why or None
    return 0, None


def _elected(world: World, topic: TopicImage, index: int, kind: Election) -> VersionedRecord:
    partition = topic.partitions[index]
    if partition.leader == partition.preferred_leader if kind is Election.PREFERRED else partition.has_leader:
        raise Refused(ELECTION_NOT_NEEDED, f"{topic.name}-{index} is led by {partition.leader} already")
    change = change_of(world, topic, partition)
    change.election = kind
    record = plan_change(topic.id, index, partition, change)
    if record is None:
        raise Refused(_UNAVAILABLE[kind], f"nobody can be elected for {topic.name}-{index}")
    return world.versioned(record)


_UNAVAILABLE: Final[dict[Election, ErrorCode]] = {
    Election.PREFERRED: PREFERRED_LEADER_NOT_AVAILABLE,
    Election.UNCLEAN: ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def decide_preferred(world: World) -> Decision:
    """Gives partitions back to their preferred leaders where those can lead."""
    records: list[VersionedRecord] = []
    for topic, index in places(world, world.index.moved()):
        partition = topic.partitions[index]
        change = change_of(world, topic, partition)
        change.election = Election.PREFERRED
        record = plan_change(topic.id, index, partition, change)
        if record is not None:
            records.append(world.versioned(record))
        if len(records) == ELECTIONS_MAX:
            break
    return Decision(records, name="preferred leaders")


def decide_unclean(world: World) -> Decision:
    """Elects whoever is alive for leaderless partitions of topics that allow to lose records."""
    records: list[VersionedRecord] = []
    for topic, index in places(world, world.index.leaderless()):
        if not world.unclean_allowed(topic.name):
            continue
        partition = topic.partitions[index]
        record = plan_change(topic.id, index, partition, change_of(world, topic, partition))
        if record is not None:
            records.append(world.versioned(record))
        if len(records) == ELECTIONS_MAX:
            break
    return Decision(records, name="unclean leaders")
