"""How both brokers are set up, and what kinds of requests there are."""

from __future__ import annotations

PROPERTIES = {
    # A missing topic is made by the first who names it: at once by us, a while later by Kafka.
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": "1700000",
    "group.consumer.max.session.timeout.ms": "1700000",
    "group.consumer.assignment.interval.ms": "0",
    # Which of too many fetch sessions ends first is up to each broker.
    "max.incremental.fetch.session.cache.slots": "100000",
    "log.retention.ms": "-1",
    # What a broker does now and then by itself is not done in the time that this takes.
    "log.initial.task.delay.ms": "3600000",
    "producer.id.expiration.check.interval.ms": "3600000",
}
CHANGES = frozenset(
    {
        "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs",
        "AlterPartitionReassignments", "ElectLeaders", "UpdateFeatures",
    }
)  # fmt: skip
"""What changes metadata, after which the brokers are brought into step."""
READS = frozenset(
    {
        "ApiVersions", "Metadata", "ListOffsets", "OffsetForLeaderEpoch", "OffsetFetch", "ListGroups", "DescribeGroups",
        "ConsumerGroupDescribe", "DescribeConfigs", "ListConfigResources", "DescribeCluster", "DescribeTopicPartitions",
        "DescribeLogDirs", "DescribeProducers", "DescribeQuorum", "ListPartitionReassignments", "FindCoordinator",
        "DescribeAcls", "DescribeTransactions", "ListTransactions",
    }
)  # fmt: skip
"""What may be asked again when the answers differ, in case one broker was only a little later."""
