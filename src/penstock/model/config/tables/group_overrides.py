"""What may be set for one group, with the broker properties that supply its default."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef, Synonym
from penstock.model.config.tables.words import ACTED, BOOLEAN, INT, LATER, MEDIUM, STRING
from penstock.model.config.validators import OffsetReset, OneOf, at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
GROUP_OVERRIDES: tuple[ConfigDef, ...] = (
    ConfigDef(
        "consumer.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM,
        "The least time between two assignments of this consumer group; 0 sets none.",
        ACTED, synonyms=(Synonym("group.consumer.assignment.interval.ms"),)),
    ConfigDef(
        "consumer.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "How often members of this consumer group send heartbeats.",
        ACTED, synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),)),
    ConfigDef(
        "consumer.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "How long a member of this consumer group may be silent before it is removed.",
        ACTED, synonyms=(Synonym("group.consumer.session.timeout.ms"),)),
    ConfigDef(
        "share.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM,
        "The least time between two assignments of this share group; 0 sets none.",
        LATER, synonyms=(Synonym("group.share.assignment.interval.ms"),)),
    ConfigDef(
        "share.auto.offset.reset", STRING, "latest", OffsetReset(), MEDIUM,
        "Where this share group begins a new partition: earliest, latest, or by_duration: and an ISO 8601 duration "
        "back.", LATER),
    ConfigDef(
        "share.delivery.count.limit", INT, 5, at_least(2), MEDIUM,
        "How often this share group delivers a record before it counts as undeliverable.",
        LATER, synonyms=(Synonym("group.share.delivery.count.limit"),)),
    ConfigDef(
        "share.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "How often members of this share group send heartbeats.",
        LATER, synonyms=(Synonym("group.share.heartbeat.interval.ms"),)),
    ConfigDef(
        "share.isolation.level", STRING, "read_uncommitted", OneOf(("read_committed", "read_uncommitted")), MEDIUM,
        "Whether this share group sees records of open and aborted transactions.", LATER),
    ConfigDef(
        "share.partition.max.record.locks", INT, 2000, at_least(100), MEDIUM,
        "How many records of one partition this share group may have out at once.",
        LATER, synonyms=(Synonym("group.share.partition.max.record.locks"),)),
    ConfigDef(
        "share.record.lock.duration.ms", INT, 30_000, at_least(1000), MEDIUM,
        "How long a record delivered by this share group is reserved for its consumer.",
        LATER, synonyms=(Synonym("group.share.record.lock.duration.ms"),)),
    ConfigDef(
        "share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM,
        "Whether consumers of this share group may prolong their hold on a record.", LATER),
    ConfigDef(
        "share.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "How long a member of this share group may be silent before it is removed.",
        LATER, synonyms=(Synonym("group.share.session.timeout.ms"),)),
    ConfigDef(
        "streams.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM,
        "The least time between two assignments of this streams group; 0 sets none.",
        LATER, synonyms=(Synonym("group.streams.assignment.interval.ms"),)),
    ConfigDef(
        "streams.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM,
        "How often members of this streams group send heartbeats.",
        LATER, synonyms=(Synonym("group.streams.heartbeat.interval.ms"),)),
    ConfigDef(
        "streams.initial.rebalance.delay.ms", INT, 3000, at_least(0), MEDIUM,
        "How long this streams group, when empty, waits for more members before its first assignment.",
        LATER, synonyms=(Synonym("group.streams.initial.rebalance.delay.ms"),)),
    ConfigDef(
        "streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM,
        "How many standby copies of each stateful task this streams group keeps.",
        LATER, synonyms=(Synonym("group.streams.num.standby.replicas"),)),
    ConfigDef(
        "streams.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM,
        "How long a member of this streams group may be silent before it is removed.",
        LATER, synonyms=(Synonym("group.streams.session.timeout.ms"),)),
)
# fmt: on
