"""Tiered storage."""

from __future__ import annotations

from penstock.model.config.definition import LONG_MAX, ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    FILLED,
    INT,
    LATER,
    LONG,
    LOW,
    MEDIUM,
    STRING,
)
from penstock.model.config.validators import at_least, between

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
REMOTE: tuple[ConfigDef, ...] = (
    ConfigDef(
        "remote.log.storage.system.enable", BOOLEAN, False, None, MEDIUM,
        "Whether topics may keep old segments in remote storage.", LATER),
    ConfigDef(
        "remote.log.storage.manager.class.name", STRING, None, FILLED, MEDIUM,
        "The Java class that moves segments to remote storage. Java plug-ins cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "remote.log.storage.manager.class.path", STRING, None, None, MEDIUM,
        "Where the remote storage class is loaded from.", ACCEPTED),
    ConfigDef(
        "remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", FILLED, MEDIUM,
        "The prefix of properties that are passed to the remote storage class.", ACCEPTED),
    ConfigDef(
        "remote.log.metadata.manager.class.name", STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", FILLED, MEDIUM,
        "The Java class that remembers which segments are remote. Java plug-ins cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM,
        "Where the remote metadata class is loaded from.", ACCEPTED),
    ConfigDef(
        "remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", FILLED, MEDIUM,
        "The prefix of properties that are passed to the remote metadata class.", ACCEPTED),
    ConfigDef(
        "remote.log.metadata.manager.listener.name", STRING, None, FILLED, MEDIUM,
        "The listener over which the remote metadata class reaches the brokers.", ACCEPTED),
    ConfigDef(
        "remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0), LOW,
        "The most bytes a remote store may attach to a segment's metadata.", LATER),
    ConfigDef(
        "remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, at_least(1), LOW,
        "The disk space for cached indexes of remote segments.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.index.file.cache.ttl.ms", LONG, 900_000, at_least(-1), LOW,
        "How long an unused cached index of a remote segment is kept; -1 for ever.", LATER, internal=True),
    ConfigDef(
        "remote.log.manager.thread.pool.size", INT, 2, at_least(1), MEDIUM,
        "An older setting of Kafka's pool for remote work, now split by task.", ACCEPTED),
    ConfigDef(
        "remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1), MEDIUM,
        "Kafka's threads that copy segments to remote storage.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1), MEDIUM,
        "Kafka's threads that remove expired remote segments.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1), MEDIUM,
        "Kafka's threads that keep followers informed about remote segments.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.manager.task.interval.ms", LONG, 30_000, at_least(1), LOW,
        "How often segments are looked for that can be copied or removed.", LATER),
    ConfigDef(
        "remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1), LOW,
        "How long a remote task that failed waits at first.", LATER, internal=True),
    ConfigDef(
        "remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1), LOW,
        "The longest wait of a remote task that keeps failing.", LATER, internal=True),
    ConfigDef(
        "remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5), LOW,
        "The random share added to the waits of a failing remote task.", LATER, internal=True),
    ConfigDef(
        "remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, at_least(1), MEDIUM,
        "The most bytes a second copied to remote storage.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.manager.copy.quota.window.num", INT, 11, at_least(1), MEDIUM,
        "How many samples the copy quota keeps.", LATER),
    ConfigDef(
        "remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1), MEDIUM,
        "How many seconds one sample of the copy quota covers.", LATER),
    ConfigDef(
        "remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, at_least(1), MEDIUM,
        "The most bytes a second read from remote storage.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1), MEDIUM,
        "How many samples the remote read quota keeps.", LATER),
    ConfigDef(
        "remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1), MEDIUM,
        "How many seconds one sample of the remote read quota covers.", LATER),
    ConfigDef(
        "remote.log.reader.threads", INT, 10, at_least(1), MEDIUM,
        "Kafka's threads that read from remote storage.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.log.reader.max.pending.tasks", INT, 100, at_least(1), MEDIUM,
        "How many remote reads may wait before fetches are turned away.", LATER),
    ConfigDef(
        "remote.fetch.max.wait.ms", INT, 500, at_least(1), MEDIUM,
        "How long a fetch may wait for remote storage.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "remote.list.offsets.request.timeout.ms", LONG, 30_000, at_least(1), MEDIUM,
        "How long an offset lookup may wait for remote storage.", LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.local.retention.ms", LONG, -2, at_least(-2), MEDIUM,
        "How long a tiered topic keeps segments locally; -2 means as long as its whole retention.",
        LATER, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.local.retention.bytes", LONG, -2, at_least(-2), MEDIUM,
        "How many bytes a tiered topic keeps locally; -2 means as many as its whole retention.",
        LATER, update_mode=CLUSTER_WIDE),
)
# fmt: on
