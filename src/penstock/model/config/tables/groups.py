"""Classic, consumer and streams groups and their offsets."""

from __future__ import annotations

from penstock.model.config.definition import INT_MAX, ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    CLUSTER_WIDE,
    FILLED_LIST,
    HIGH,
    INT,
    LATER,
    LIST,
    LONG,
    MEDIUM,
    SHORT,
    STRING,
)
from penstock.model.config.validators import ListOf, OneOf, at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
GROUPS: tuple[ConfigDef, ...] = (
    ConfigDef(
        "group.min.session.timeout.ms", INT, 6000, None, MEDIUM,
        "The shortest session timeout a member of a classic group may ask for.", ACTED),
    ConfigDef(
        "group.max.session.timeout.ms", INT, 1_800_000, None, MEDIUM,
        "The longest session timeout a member of a classic group may ask for.", ACTED),
    ConfigDef(
        "group.initial.rebalance.delay.ms", INT, 3000, None, MEDIUM,
        "How long an empty classic group waits for more members before its first rebalance.", ACTED),
    ConfigDef(
        "group.max.size", INT, INT_MAX, at_least(1), MEDIUM,
        "The most members of a classic group.", ACTED),
    ConfigDef(
        "group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), ListOf(("consumer",
        "classic", "share", "streams"), empty=False), MEDIUM,
        "Which kinds of groups are served. The classic kind cannot be turned off.", ACTED),
    ConfigDef(
        "group.coordinator.threads", INT, 4, at_least(1), HIGH,
        "Kafka's coordinator threads. Coordinators run on the event loop here.", ACCEPTED),
    ConfigDef(
        "group.coordinator.background.threads", INT, 2, at_least(1), HIGH,
        "Kafka's threads for slow coordinator work, such as regular expressions.", ACCEPTED),
    ConfigDef(
        "group.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM,
        "How long Kafka's coordinator gathers records before it appends them. Here it appends at once.", ACCEPTED),
    ConfigDef(
        "group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288), MEDIUM,
        "How large a buffer Kafka's coordinator keeps for its next append.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "offsets.topic.num.partitions", INT, 50, at_least(1), HIGH,
        "The partitions of the offsets topic. Changing it later loses track of groups.", ACTED),
    ConfigDef(
        "offsets.topic.replication.factor", SHORT, 3, at_least(1), HIGH,
        "The replicas of the offsets topic. It is not created until that many brokers are there.", ACTED),
    ConfigDef(
        "offsets.topic.segment.bytes", INT, 104_857_600, at_least(1), HIGH,
        "The segment size of the offsets topic; small ones load and compact faster. Less than 1 MiB counts as 1 MiB.",
        ACTED),
    ConfigDef(
        "offsets.topic.compression.codec", INT, 0, None, HIGH,
        "The codec of the offsets topic, by number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", ACTED),
    ConfigDef(
        "offsets.retention.minutes", INT, 10_080, at_least(1), HIGH,
        "How long the offsets of an empty group are kept after its last member left.", ACTED),
    ConfigDef(
        "offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), HIGH,
        "How often expired offsets are removed.", ACTED),
    ConfigDef(
        "offsets.commit.timeout.ms", INT, 5000, at_least(1), HIGH,
        "How long an offset commit may wait for the replicas of the offsets topic.", ACTED),
    ConfigDef(
        "offsets.load.buffer.size", INT, 5_242_880, at_least(1), HIGH,
        "How many bytes Kafka reads at a time when it loads groups from the offsets topic.", ACCEPTED),
    ConfigDef(
        "offset.metadata.max.bytes", INT, 4096, None, HIGH,
        "The most bytes of text a client may store beside a committed offset.", ACTED),
    ConfigDef(
        "group.consumer.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "How long a member of a consumer group may be silent before it is removed.", ACTED),
    ConfigDef(
        "group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "The shortest session timeout a consumer group may be given.", ACTED),
    ConfigDef(
        "group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1), MEDIUM,
        "The longest session timeout a consumer group may be given.", ACTED),
    ConfigDef(
        "group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "How often members of a consumer group send heartbeats.", ACTED),
    ConfigDef(
        "group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "The shortest heartbeat interval a consumer group may be given.", ACTED),
    ConfigDef(
        "group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1), MEDIUM,
        "The longest heartbeat interval a consumer group may be given.", ACTED),
    ConfigDef(
        "group.consumer.max.size", INT, INT_MAX, at_least(1), MEDIUM,
        "The most members of a consumer group.", ACTED),
    ConfigDef(
        "group.consumer.assignors", LIST, ("uniform", "range"), FILLED_LIST, MEDIUM,
        "The server-side assignors for consumer groups; the first is the default. uniform and range are built in.",
        ACTED),
    ConfigDef(
        "group.consumer.migration.policy", STRING, "bidirectional", OneOf(("DISABLED", "DOWNGRADE", "UPGRADE",
        "BIDIRECTIONAL"), ignore_case=True), MEDIUM,
        "Whether a group may change between the classic and the consumer protocol while it has members.", ACTED),
    ConfigDef(
        "group.consumer.regex.refresh.interval.ms", INT, 600_000, at_least(10_000), MEDIUM,
        "How often the topics behind a group's regular expression are looked up again.", ACTED, internal=True),
    ConfigDef(
        "group.consumer.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM,
        "The least time between two assignments of a consumer group; 0 sets none.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "group.consumer.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM,
        "The shortest assignment interval a consumer group may be given.", ACTED),
    ConfigDef(
        "group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0), MEDIUM,
        "The longest assignment interval a consumer group may be given.", ACTED),
    ConfigDef(
        "group.streams.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "How long a member of a streams group may be silent before it is removed.", LATER),
    ConfigDef(
        "group.streams.min.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "The shortest session timeout a streams group may be given.", LATER),
    ConfigDef(
        "group.streams.max.session.timeout.ms", INT, 60_000, at_least(1), MEDIUM,
        "The longest session timeout a streams group may be given.", LATER),
    ConfigDef(
        "group.streams.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "How often members of a streams group send heartbeats.", LATER),
    ConfigDef(
        "group.streams.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "The shortest heartbeat interval a streams group may be given.", LATER),
    ConfigDef(
        "group.streams.max.heartbeat.interval.ms", INT, 15_000, at_least(1), MEDIUM,
        "The longest heartbeat interval a streams group may be given.", LATER),
    ConfigDef(
        "group.streams.max.size", INT, INT_MAX, at_least(1), MEDIUM,
        "The most members of a streams group.", LATER),
    ConfigDef(
        "group.streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM,
        "How many standby copies of each stateful task a streams group keeps.", LATER),
    ConfigDef(
        "group.streams.max.standby.replicas", INT, 2, at_least(0), MEDIUM,
        "The most standby copies a streams group may ask for.", LATER),
    ConfigDef(
        "group.streams.initial.rebalance.delay.ms", INT, 3000, at_least(0), MEDIUM,
        "How long an empty streams group waits for more members before its first assignment.", LATER),
    ConfigDef(
        "group.streams.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM,
        "The least time between two assignments of a streams group; 0 sets none.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "group.streams.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM,
        "The shortest assignment interval a streams group may be given.", LATER),
    ConfigDef(
        "group.streams.max.assignment.interval.ms", INT, 15_000, at_least(0), MEDIUM,
        "The longest assignment interval a streams group may be given.", LATER),
)
# fmt: on
