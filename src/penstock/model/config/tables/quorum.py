"""The metadata quorum, the metadata log, and how brokers register with the controller."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import ACCEPTED, ACTED, BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM
from penstock.model.config.validators import HostPorts, Voters, at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
QUORUM: tuple[ConfigDef, ...] = (
    ConfigDef(
        "controller.quorum.voters", LIST, (), Voters(), HIGH,
        "The controllers of a fixed quorum, as id@host:port entries.", ACTED),
    ConfigDef(
        "controller.quorum.bootstrap.servers", LIST, (), HostPorts(), HIGH,
        "Controllers to dial first, as host:port entries. The current voters are learned from them.", ACTED),
    ConfigDef(
        "controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW,
        "Whether a controller adds itself to the voters when it starts.", ACTED),
    ConfigDef(
        "controller.quorum.election.timeout.ms", INT, 1000, at_least(0), HIGH,
        "How long a candidate waits for votes before it tries again.", ACTED),
    ConfigDef(
        "controller.quorum.election.backoff.max.ms", INT, 1000, at_least(0), HIGH,
        "The longest random wait before a failed election is repeated.", ACTED),
    ConfigDef(
        "controller.quorum.fetch.timeout.ms", INT, 2000, at_least(0), HIGH,
        "How long a voter goes without the leader before it stands for election, and a leader without a majority "
        "before it resigns.", ACTED),
    ConfigDef(
        "controller.quorum.append.linger.ms", INT, 25, at_least(0), MEDIUM,
        "How long the leader gathers metadata records before it flushes them.", ACCEPTED),
    ConfigDef(
        "controller.quorum.request.timeout.ms", INT, 2000, at_least(0), MEDIUM,
        "How long a quorum request may take before it counts as failed.", ACTED),
    ConfigDef(
        "controller.quorum.retry.backoff.ms", INT, 20, at_least(0), LOW,
        "How long a quorum request that failed waits before it is sent again.", ACTED),
    ConfigDef(
        "controller.quorum.fetch.max.bytes", INT, 1_048_576, at_least(1), LOW,
        "The most bytes of metadata records in one fetch of the quorum.", ACTED),
    ConfigDef(
        "controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, at_least(1), LOW,
        "The most bytes of one piece of a metadata snapshot.", ACTED),
    ConfigDef(
        "controller.socket.timeout.ms", INT, 30_000, None, MEDIUM,
        "How long a node waits for one answer of the controller before it looks for it again.", ACTED),
    ConfigDef(
        "controller.performance.sample.period.ms", LONG, 60_000, at_least(100), MEDIUM,
        "How often Kafka logs statistics of its controller events.", ACCEPTED, internal=True),
    ConfigDef(
        "controller.performance.always.log.threshold.ms", LONG, 2000, at_least(0), MEDIUM,
        "From which duration on Kafka always logs a controller event.", ACCEPTED, internal=True),
    ConfigDef(
        "broker.heartbeat.interval.ms", INT, 2000, None, MEDIUM,
        "How often a broker sends its heartbeat to the controller.", ACTED),
    ConfigDef(
        "broker.session.timeout.ms", INT, 9000, None, MEDIUM,
        "How long a broker may be silent before the controller fences it.", ACTED),
    ConfigDef(
        "initial.broker.registration.timeout.ms", INT, 60_000, None, MEDIUM,
        "How long a starting broker asks for an id that another process seems to hold before it gives up. It waits for "
        "a controller without end.", ACTED),
    ConfigDef(
        "metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, at_least(1), HIGH,
        "After how many bytes of new metadata records a snapshot is written.", ACTED),
    ConfigDef(
        "metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, at_least(0), HIGH,
        "After how much time a snapshot is written if there is anything new; 0 never by time.", ACTED),
    ConfigDef(
        "metadata.log.segment.bytes", INT, 1_073_741_824, at_least(8_388_608), HIGH,
        "The size of a segment of the metadata log.", ACTED),
    ConfigDef(
        "metadata.log.segment.ms", LONG, 604_800_000, None, HIGH,
        "The age at which a segment of the metadata log ends.", ACTED),
    ConfigDef(
        "metadata.max.retention.bytes", LONG, 104_857_600, None, HIGH,
        "How many bytes of metadata log and snapshots are kept, beyond the newest snapshot.", ACTED),
    ConfigDef(
        "metadata.max.retention.ms", LONG, 604_800_000, None, HIGH,
        "How long metadata log segments and snapshots are kept, beyond the newest snapshot.", ACTED),
    ConfigDef(
        "metadata.max.idle.interval.ms", INT, 500, at_least(0), LOW,
        "How often the active controller writes a no-op record when nothing happens; 0 never.", ACTED),
    ConfigDef(
        "internal.metadata.log.segment.bytes", INT, None, None, LOW,
        "A smaller segment size for the metadata log than the public setting allows; for tests.", ACTED, internal=True),
    ConfigDef(
        "internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, None, LOW,
        "The largest batch of metadata records; for tests.", ACCEPTED, internal=True),
    ConfigDef(
        "internal.metadata.delete.delay.millis", LONG, 60_000, None, LOW,
        "How long a deleted metadata segment or snapshot stays on disk; for tests.", ACTED, internal=True),
)
# fmt: on
