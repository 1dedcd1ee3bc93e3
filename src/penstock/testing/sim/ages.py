"""Worlds that begin old: what lies behind their topics and their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.ids import PartitionKey, TopicPartition
from penstock.testing.ancient import OldTopic, Past, offsets_topic, transactions_topic
from penstock.testing.sim.workload import GROUP

if TYPE_CHECKING:
    from penstock.testing.ancient import Age
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.truth import Truth


def past_of(age: Age, plan: Plan) -> Past:
    """The topics of the workload and its group, as they are after years."""
    topics = [
        OldTopic(name, _spread(plan, plan.partitions, plan.replicas_of(name)), configs)
        for name, configs in plan.topics().items()
    ]
    topics.append(offsets_topic(_spread(plan, int(plan.properties["offsets.topic.num.partitions"]))))
    classic = plan.group_protocol == "classic"
    ids: dict[str, int] = {}
    if plan.transactions is not None:
        topics.append(transactions_topic(_spread(plan, int(plan.properties["transaction.state.log.num.partitions"]))))
        ids = plan.transactions.old_ids
    return Past(
        age,
        topics,
        classic_groups=[GROUP] if classic else [],
        consumer_groups=[] if classic else [GROUP],
        transactional_ids=ids,
    )


def remember(past: Past, truth: Truth) -> None:
    """What went before the world began is no loss of its replicas."""
    for topic in past.topics:
        for number in range(len(topic.replicas)):
            partition = truth.of(PartitionKey(topic.id, number), TopicPartition(topic.name, number))
            partition.start = partition.end = past.age.offset


def _spread(plan: Plan, partitions: int, replicas: int = 0) -> list[list[int]]:
    """Replicas one broker further for each partition."""
    brokers = plan.brokers
    return [
        [brokers[(number + replica) % len(brokers)] for replica in range(replicas or plan.replication)]
        for number in range(partitions)
    ]
