"""Every property of a topic, with the broker properties that supply its default."""

from __future__ import annotations

from penstock.model.config.definition import LONG_MAX, ConfigDef, Synonym
from penstock.model.config.tables.words import (
    ACTED,
    BOOLEAN,
    CLEANUP,
    CODEC,
    DOUBLE,
    GZIP_LEVEL,
    INT,
    LATER,
    LIST,
    LONG,
    MEDIUM,
    STRING,
    THROTTLED,
    TIMESTAMP_TYPE,
)
from penstock.model.config.validators import at_least, between

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
TOPICS: tuple[ConfigDef, ...] = (
    ConfigDef(
        "cleanup.policy", LIST, ("delete",), CLEANUP, MEDIUM,
        "What happens to old records: delete them, compact them by key, both, or neither when empty.",
        ACTED, synonyms=(Synonym("log.cleanup.policy"),)),
    ConfigDef(
        "compression.type", STRING, "producer", CODEC, MEDIUM,
        "The codec in which batches are stored; producer keeps whatever the producer sent.",
        ACTED, synonyms=(Synonym("compression.type"),)),
    ConfigDef(
        "compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM,
        "The gzip level used when the broker recompresses; -1 takes the default of the codec.",
        ACTED, synonyms=(Synonym("compression.gzip.level"),)),
    ConfigDef(
        "compression.lz4.level", INT, 9, between(1, 17), MEDIUM,
        "The lz4 level used when the broker recompresses.", ACTED, synonyms=(Synonym("compression.lz4.level"),)),
    ConfigDef(
        "compression.zstd.level", INT, 3, between(-131_072, 22), MEDIUM,
        "The zstd level used when the broker recompresses; negative levels trade size for speed.",
        ACTED, synonyms=(Synonym("compression.zstd.level"),)),
    ConfigDef(
        "delete.retention.ms", LONG, 86_400_000, at_least(0), MEDIUM,
        "How long tombstones and transaction markers stay in a compacted topic, for readers that are behind.",
        ACTED, synonyms=(Synonym("log.cleaner.delete.retention.ms"),)),
    ConfigDef(
        "file.delete.delay.ms", LONG, 60_000, at_least(0), MEDIUM,
        "How long the files of a deleted segment stay on disk for readers that still hold them.",
        ACTED, synonyms=(Synonym("log.segment.delete.delay.ms"),)),
    ConfigDef(
        "flush.messages", LONG, LONG_MAX, at_least(1), MEDIUM,
        "After how many records a partition is flushed to disk. 1 means flush before every acknowledgement.",
        ACTED, synonyms=(Synonym("log.flush.interval.messages"),)),
    ConfigDef(
        "flush.ms", LONG, LONG_MAX, at_least(0), MEDIUM,
        "The longest a record stays in memory before it is flushed to disk.",
        ACTED, synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms"))),
    ConfigDef(
        "follower.replication.throttled.replicas", LIST, (), THROTTLED, MEDIUM,
        "The follower replicas, as partition:broker entries, that obey the follower throttle; * means all.", ACTED),
    ConfigDef(
        "leader.replication.throttled.replicas", LIST, (), THROTTLED, MEDIUM,
        "The leader replicas, as partition:broker entries, that obey the leader throttle; * means all.", ACTED),
    ConfigDef(
        "index.interval.bytes", INT, 4096, at_least(0), MEDIUM,
        "About how many bytes of log lie between two entries of the offset index.",
        ACTED, synonyms=(Synonym("log.index.interval.bytes"),)),
    ConfigDef(
        "internal.segment.bytes", INT, None, None, MEDIUM,
        "A smaller segment size than segment.bytes allows; for tests.", ACTED, internal=True),
    ConfigDef(
        "local.retention.bytes", LONG, -2, at_least(-2), MEDIUM,
        "How many bytes a tiered topic keeps locally; -2 means as many as its whole retention.",
        LATER, synonyms=(Synonym("log.local.retention.bytes"),)),
    ConfigDef(
        "local.retention.ms", LONG, -2, at_least(-2), MEDIUM,
        "How long a tiered topic keeps segments locally; -2 means as long as its whole retention.",
        LATER, synonyms=(Synonym("log.local.retention.ms"),)),
    ConfigDef(
        "max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), MEDIUM,
        "The most time a record may stay out of compaction's reach.",
        ACTED, synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),)),
    ConfigDef(
        "max.message.bytes", INT, 1_048_588, at_least(0), MEDIUM,
        "The largest record batch the topic accepts, after compression.",
        ACTED, synonyms=(Synonym("message.max.bytes"),)),
    ConfigDef(
        "message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), MEDIUM,
        "How far a producer's timestamp may lie in the future; a record beyond that is refused.",
        ACTED, synonyms=(Synonym("log.message.timestamp.after.max.ms"),)),
    ConfigDef(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), MEDIUM,
        "How far a producer's timestamp may lie in the past; a record beyond that is refused.",
        ACTED, synonyms=(Synonym("log.message.timestamp.before.max.ms"),)),
    ConfigDef(
        "message.timestamp.type", STRING, "CreateTime", TIMESTAMP_TYPE, MEDIUM,
        "Whether a record carries the time the producer gave it or the time it was appended.",
        ACTED, synonyms=(Synonym("log.message.timestamp.type"),)),
    ConfigDef(
        "min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), MEDIUM,
        "The share of dirty bytes from which on the topic is worth compacting.",
        ACTED, synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),)),
    ConfigDef(
        "min.compaction.lag.ms", LONG, 0, at_least(0), MEDIUM,
        "The least time a record stays before compaction may remove it.",
        ACTED, synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),)),
    ConfigDef(
        "min.insync.replicas", INT, 1, at_least(1), MEDIUM,
        "How many replicas must have a record before acks=all is answered. With fewer in sync, such produces are "
        "refused.", ACTED, synonyms=(Synonym("min.insync.replicas"),)),
    ConfigDef(
        "preallocate", BOOLEAN, False, None, MEDIUM,
        "Whether a new segment file gets its full size at once.", ACTED, synonyms=(Synonym("log.preallocate"),)),
    ConfigDef(
        "remote.log.copy.disable", BOOLEAN, False, None, MEDIUM,
        "Whether a tiered topic stops copying segments to remote storage and only reads what is there.", LATER),
    ConfigDef(
        "remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM,
        "Whether turning tiering off also deletes what is in remote storage.", LATER),
    ConfigDef(
        "remote.storage.enable", BOOLEAN, False, None, MEDIUM,
        "Whether the topic keeps old segments in remote storage.", LATER),
    ConfigDef(
        "retention.bytes", LONG, -1, None, MEDIUM,
        "How many bytes a partition keeps before old segments go; -1 sets no bound.",
        ACTED, synonyms=(Synonym("log.retention.bytes"),)),
    ConfigDef(
        "retention.ms", LONG, 604_800_000, at_least(-1), MEDIUM,
        "How long records are kept; -1 for ever.",
        ACTED, synonyms=(
            Synonym("log.retention.ms"), Synonym("log.retention.minutes", 60_000),
            Synonym("log.retention.hours", 3_600_000))),
    ConfigDef(
        "segment.bytes", INT, 1_073_741_824, at_least(1_048_576), MEDIUM,
        "The size at which a segment file is full and the next one begins.",
        ACTED, synonyms=(Synonym("log.segment.bytes"),)),
    ConfigDef(
        "segment.index.bytes", INT, 10_485_760, at_least(4), MEDIUM,
        "The largest size of a segment's offset or time index.",
        ACTED, synonyms=(Synonym("log.index.size.max.bytes"),)),
    ConfigDef(
        "segment.jitter.ms", LONG, 0, at_least(0), MEDIUM,
        "The most that is randomly taken off the roll time, so that topics do not roll together.",
        ACTED, synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", 3_600_000))),
    ConfigDef(
        "segment.ms", LONG, 604_800_000, at_least(1), MEDIUM,
        "The age at which a segment ends even if it is not full.",
        ACTED, synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", 3_600_000))),
    ConfigDef(
        "unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM,
        "Whether a replica that is behind may lead when no other is left, at the price of losing records.",
        ACTED, synonyms=(Synonym("unclean.leader.election.enable"),)),
)
# fmt: on
