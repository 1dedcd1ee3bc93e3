"""Who the node is, what topics get by default, and what Kafka does with threads."""

from __future__ import annotations

from penstock.model.config.definition import LONG_MAX, REQUIRED, ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    ANY_LIST,
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    CODEC,
    GZIP_LEVEL,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    STRING,
)
from penstock.model.config.validators import ListOf, at_least, between

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
NODE: tuple[ConfigDef, ...] = (
    ConfigDef(
        "node.id", INT, REQUIRED, at_least(0), HIGH,
        "The number of this node in the cluster. It must be unique and never change for a data directory.", ACTED),
    ConfigDef(
        "broker.id", INT, -1, None, HIGH,
        "The older spelling of node.id. When both are given they must agree.", ACTED),
    ConfigDef(
        "process.roles", LIST, REQUIRED, ListOf(("broker", "controller"), empty=False), HIGH,
        "What this process does: broker, controller, or both.", ACTED),
    ConfigDef(
        "broker.rack", STRING, None, None, MEDIUM,
        "The zone this broker stands in. Replica placement spreads partitions over zones, and a consumer may read "
        "from its own.", ACTED),
    ConfigDef(
        "auto.create.topics.enable", BOOLEAN, True, None, HIGH,
        "Whether a metadata request for a missing topic creates it with the defaults of the broker.", ACTED),
    ConfigDef(
        "delete.topic.enable", BOOLEAN, True, None, HIGH,
        "Whether topics may be deleted. When false, DeleteTopics is refused.", ACTED),
    ConfigDef(
        "num.partitions", INT, 1, at_least(1), MEDIUM,
        "How many partitions a topic gets when its creator names no number.", ACTED),
    ConfigDef(
        "default.replication.factor", INT, 1, None, MEDIUM,
        "How many replicas a topic gets when its creator names no number.", ACTED),
    ConfigDef(
        "message.max.bytes", INT, 1_048_588, at_least(0), HIGH,
        "The largest record batch a topic accepts, after compression. Topics may override it as max.message.bytes.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "compression.type", STRING, "producer", CODEC, HIGH,
        "The codec in which batches are stored; producer keeps whatever the producer sent.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM,
        "The gzip level used when the broker recompresses; -1 takes the default of the codec.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "compression.lz4.level", INT, 9, between(1, 17), MEDIUM,
        "The lz4 level used when the broker recompresses.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "compression.zstd.level", INT, 3, between(-131_072, 22), MEDIUM,
        "The zstd level used when the broker recompresses; negative levels trade size for speed.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "fetch.max.bytes", INT, 57_671_680, at_least(1024), MEDIUM,
        "The most bytes one fetch reply carries. The first batch is always sent whole, so progress is never blocked.",
        ACTED),
    ConfigDef(
        "max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0), MEDIUM,
        "How many incremental fetch sessions the broker remembers at once.", ACTED),
    ConfigDef(
        "max.request.partition.size.limit", INT, 2000, at_least(1), MEDIUM,
        "The most partitions one DescribeTopicPartitions reply lists before it continues with a cursor.", ACTED),
    ConfigDef(
        "request.timeout.ms", INT, 30_000, None, HIGH,
        "How long this node waits for another node to answer one of its requests.", ACTED),
    ConfigDef(
        "background.threads", INT, 10, at_least(1), HIGH,
        "Kafka's pool for housekeeping. Here housekeeping runs on the event loop and in helper processes.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "num.io.threads", INT, 8, at_least(1), HIGH,
        "Kafka's request handler threads. A Penstock broker is one event loop, so the number changes nothing.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM,
        "Whether a stopping broker first moves its leaderships elsewhere.", ACTED),
    ConfigDef(
        "server.max.startup.time.ms", LONG, LONG_MAX, at_least(0), MEDIUM,
        "The most time Kafka grants a node to start before it gives up.", ACCEPTED, internal=True),
    ConfigDef(
        "create.topic.policy.class.name", CLASS, None, None, LOW,
        "A Java class that approves new topics. Java plug-ins cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "alter.config.policy.class.name", CLASS, None, None, LOW,
        "A Java class that approves config changes. Java plug-ins cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "config.providers", LIST, (), ANY_LIST, LOW,
        "Providers by which ${name:path:key} in values of this file are looked up; config.providers.<name>.class "
        "says which: Kafka's FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider are built in, others "
        "refused. References in values that are set over the wire are not looked up.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "producer.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM,
        "How often Kafka sweeps finished waiting produces. Waiting requests are freed at once here.", ACCEPTED),
    ConfigDef(
        "fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM,
        "How often Kafka sweeps finished waiting fetches. Waiting requests are freed at once here.", ACCEPTED),
    ConfigDef(
        "delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM,
        "How often Kafka sweeps finished waiting record deletions. Waiting requests are freed at once here.", ACCEPTED),
    ConfigDef(
        "unstable.api.versions.enable", BOOLEAN, False, None, HIGH,
        "Whether request versions still under development are offered. None are.", ACTED, internal=True),
    ConfigDef(
        "unstable.feature.versions.enable", BOOLEAN, False, None, HIGH,
        "Whether feature levels still under development may be turned on. None are.", ACCEPTED, internal=True),
)
# fmt: on
