"""How followers keep up with leaders."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    STRING,
)
from penstock.model.config.validators import at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
REPLICATION: tuple[ConfigDef, ...] = (
    ConfigDef(
        "replica.lag.time.max.ms", LONG, 30_000, None, HIGH,
        "How long a follower may stay behind the log end before it leaves the in-sync set.", ACTED),
    ConfigDef(
        "replica.fetch.max.bytes", INT, 1_048_576, at_least(0), MEDIUM,
        "How many bytes a follower asks of each partition in one fetch.", ACTED),
    ConfigDef(
        "replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0), MEDIUM,
        "The most bytes of one reply to a follower's fetch.", ACTED),
    ConfigDef(
        "replica.fetch.min.bytes", INT, 1, None, HIGH,
        "How many bytes a follower waits for, unless the wait runs out first.", ACTED),
    ConfigDef(
        "replica.fetch.wait.max.ms", INT, 500, None, HIGH,
        "How long a follower's fetch may wait for new records.", ACTED),
    ConfigDef(
        "replica.fetch.backoff.ms", INT, 1000, at_least(0), MEDIUM,
        "How long a follower rests after a fetch that failed.", ACTED),
    ConfigDef(
        "replica.socket.timeout.ms", INT, 30_000, None, HIGH,
        "How long a follower waits for the leader's reply.", ACTED),
    ConfigDef(
        "replica.socket.receive.buffer.bytes", INT, 65_536, None, HIGH,
        "The receive buffer of a follower's connection in Kafka. Here the system chooses it and tunes it as it runs.",
        ACCEPTED),
    ConfigDef(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, HIGH,
        "How often high watermarks are written to disk.", ACTED),
    ConfigDef(
        "replica.selector.class", STRING, None, None, MEDIUM,
        "How a consumer's read replica is chosen. Kafka's RackAwareReplicaSelector, or `rack-aware` for short, sends "
        "it to an in-sync replica in its rack; everything else means the leader.", ACTED),
    ConfigDef(
        "num.replica.fetchers", INT, 1, at_least(1), HIGH,
        "How many fetches at a time this broker has under way to each leader; partitions are spread over them.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH,
        "Whether leadership moves back to preferred replicas by itself.", ACTED),
    ConfigDef(
        "leader.imbalance.check.interval.seconds", LONG, 300, at_least(1), HIGH,
        "How often the controller looks for leaders that are not the preferred replica.", ACTED),
    ConfigDef(
        "unclean.leader.election.interval.ms", LONG, 300_000, at_least(1), MEDIUM,
        "How often the controller looks for partitions that wait for an unclean election.", ACTED, internal=True),
    ConfigDef(
        "follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, MEDIUM,
        "Whether a new follower starts after the part of the log that is already in remote storage.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "replication.quota.window.num", INT, 11, at_least(1), LOW,
        "How many samples Kafka's replication throttle keeps. Here they are always eleven.", ACCEPTED),
    ConfigDef(
        "replication.quota.window.size.seconds", INT, 1, at_least(1), LOW,
        "How many seconds one sample of Kafka's replication throttle covers. Here it is always one.", ACCEPTED),
    ConfigDef(
        "alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1), LOW,
        "How many samples Kafka's throttle for moves between directories keeps. Here their pace is kept from chunk to "
        "chunk.", ACCEPTED),
    ConfigDef(
        "alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1), LOW,
        "How many seconds one sample of Kafka's throttle for moves between directories covers. Here their pace is kept "
        "from chunk to chunk.", ACCEPTED),
)
# fmt: on
