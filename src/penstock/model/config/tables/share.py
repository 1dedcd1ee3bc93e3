"""Share groups and the share coordinator."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    CLUSTER_WIDE,
    FILLED_LIST,
    HIGH,
    INT,
    LATER,
    LIST,
    LOW,
    MEDIUM,
    SHORT,
    STRING,
)
from penstock.model.config.validators import at_least, between

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
SHARE: tuple[ConfigDef, ...] = (
    ConfigDef(
        "group.share.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "How long a member of a share group may be silent before it is removed.", LATER),
    ConfigDef(
        "group.share.min.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "The shortest session timeout a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.session.timeout.ms", INT, 60_000, at_least(1), MEDIUM,
        "The longest session timeout a share group may be given.", LATER),
    ConfigDef(
        "group.share.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "How often members of a share group send heartbeats.", LATER),
    ConfigDef(
        "group.share.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "The shortest heartbeat interval a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.heartbeat.interval.ms", INT, 15_000, at_least(1), MEDIUM,
        "The longest heartbeat interval a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.size", INT, 200, between(1, 1000), MEDIUM,
        "The most members of a share group.", LATER),
    ConfigDef(
        "group.share.assignors", LIST, ("simple",), FILLED_LIST, MEDIUM,
        "The server-side assignors for share groups; simple is built in.", LATER),
    ConfigDef(
        "group.share.delivery.count.limit", INT, 5, between(2, 10), MEDIUM,
        "How often a record is delivered before it counts as undeliverable.", LATER),
    ConfigDef(
        "group.share.min.delivery.count.limit", INT, 2, between(2, 5), MEDIUM,
        "The smallest delivery limit a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.delivery.count.limit", INT, 10, between(5, 25), MEDIUM,
        "The largest delivery limit a share group may be given.", LATER),
    ConfigDef(
        "group.share.partition.max.record.locks", INT, 2000, between(100, 10_000), MEDIUM,
        "How many records of one partition may be out with consumers at once.", LATER),
    ConfigDef(
        "group.share.min.partition.max.record.locks", INT, 100, between(100, 2000), MEDIUM,
        "The smallest lock limit a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.partition.max.record.locks", INT, 4000, between(2000, 10_000), MEDIUM,
        "The largest lock limit a share group may be given.", LATER),
    ConfigDef(
        "group.share.record.lock.duration.ms", INT, 30_000, between(1000, 3_600_000), MEDIUM,
        "How long a delivered record is reserved for its consumer.", LATER),
    ConfigDef(
        "group.share.min.record.lock.duration.ms", INT, 15_000, between(1000, 30_000), MEDIUM,
        "The shortest lock duration a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.record.lock.duration.ms", INT, 60_000, between(30_000, 3_600_000), MEDIUM,
        "The longest lock duration a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.share.sessions", INT, 2000, at_least(1), MEDIUM,
        "How many share sessions a broker remembers at once.", LATER),
    ConfigDef(
        "group.share.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM,
        "The least time between two assignments of a share group; 0 sets none.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "group.share.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM,
        "The shortest assignment interval a share group may be given.", LATER),
    ConfigDef(
        "group.share.max.assignment.interval.ms", INT, 15_000, at_least(0), MEDIUM,
        "The longest assignment interval a share group may be given.", LATER),
    ConfigDef(
        "group.share.initialize.retry.interval.ms", INT, 30_000, at_least(1), LOW,
        "How soon the set-up of a share partition that failed is tried again.", LATER, internal=True),
    ConfigDef(
        "group.share.persister.class.name", STRING, "org.apache.kafka.server.share.persister.DefaultStatePersister",
        None, MEDIUM,
        "The Java class that stores share group state. Java plug-ins cannot be loaded here.", ACCEPTED, internal=True),
    ConfigDef(
        "share.coordinator.state.topic.num.partitions", INT, 50, at_least(1), HIGH,
        "The partitions of the share state topic. Changing it later loses track of share groups.", LATER),
    ConfigDef(
        "share.coordinator.state.topic.replication.factor", SHORT, 3, at_least(1), HIGH,
        "The replicas of the share state topic.", LATER),
    ConfigDef(
        "share.coordinator.state.topic.min.isr", SHORT, 2, at_least(1), HIGH,
        "The in-sync replicas that a write to the share state topic needs.", LATER),
    ConfigDef(
        "share.coordinator.state.topic.segment.bytes", INT, 104_857_600, at_least(1), HIGH,
        "The segment size of the share state topic.", LATER),
    ConfigDef(
        "share.coordinator.state.topic.compression.codec", INT, 0, None, HIGH,
        "The codec of the share state topic, by number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", LATER),
    ConfigDef(
        "share.coordinator.state.topic.prune.interval.ms", INT, 300_000, at_least(1), LOW,
        "How often share state that snapshots have made redundant is removed.", LATER, internal=True),
    ConfigDef(
        "share.coordinator.snapshot.update.records.per.snapshot", INT, 500, between(0, 500), MEDIUM,
        "How many updates follow a snapshot of a share partition before the next snapshot.", LATER),
    ConfigDef(
        "share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000, at_least(1), LOW,
        "How often quiet share partitions get a fresh snapshot, so that old records can be pruned.",
        LATER, internal=True),
    ConfigDef(
        "share.coordinator.write.timeout.ms", INT, 5000, at_least(1), HIGH,
        "How long a write of share state may wait for its replicas.", LATER),
    ConfigDef(
        "share.coordinator.load.buffer.size", INT, 5_242_880, at_least(1), HIGH,
        "How many bytes Kafka reads at a time when it loads share state.", ACCEPTED),
    ConfigDef(
        "share.coordinator.threads", INT, 1, at_least(1), MEDIUM,
        "Kafka's share coordinator threads. Coordinators run on the event loop here.", ACCEPTED),
    ConfigDef(
        "share.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM,
        "How long the share coordinator gathers records before it appends them; -1 adapts to the load.", LATER),
    ConfigDef(
        "share.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288), MEDIUM,
        "How large a buffer Kafka's share coordinator keeps for its next append.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "share.fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM,
        "How often Kafka sweeps finished waiting share fetches. Waiting requests are freed at once here.", ACCEPTED),
)
# fmt: on
