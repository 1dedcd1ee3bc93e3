"""How records lie on disk: directories, segments, retention, compaction, flushing, timestamps."""

from __future__ import annotations

from penstock.model.config.definition import DOUBLE_MAX, LONG_MAX, ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    ANY_LIST,
    BOOLEAN,
    CLEANUP,
    CLUSTER_WIDE,
    DOUBLE,
    FILLED_LIST,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PER_BROKER,
    STRING,
    TIMESTAMP_TYPE,
)
from penstock.model.config.validators import at_least, between

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
LOG: tuple[ConfigDef, ...] = (
    ConfigDef(
        "log.dir", LIST, ("/tmp/kafka-logs",), FILLED_LIST, HIGH,
        "The data directory, or several, when log.dirs is not set.", ACTED),
    ConfigDef(
        "log.dirs", LIST, None, FILLED_LIST, HIGH,
        "The data directories. Each partition lives in one; a directory that fails goes offline alone.", ACTED),
    ConfigDef(
        "cordoned.log.dirs", LIST, (), ANY_LIST, MEDIUM,
        "Data directories that take no new partitions; * means all of them.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "metadata.log.dir", STRING, None, None, HIGH,
        "The directory of the metadata log. Without it the first data directory is taken.", ACTED),
    ConfigDef(
        "log.dir.failure.timeout.ms", LONG, 30_000, at_least(1), LOW,
        "How long a broker may fail to report an offline directory before it stops itself.", ACTED),
    ConfigDef(
        "log.segment.bytes", INT, 1_073_741_824, at_least(1_048_576), HIGH,
        "The size at which a segment file is full and the next one begins.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.roll.ms", LONG, None, None, HIGH,
        "The age at which a segment ends even if it is not full. Beats log.roll.hours.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.roll.hours", INT, 168, at_least(1), HIGH,
        "The age in hours at which a segment ends even if it is not full.", ACTED),
    ConfigDef(
        "log.roll.jitter.ms", LONG, None, None, HIGH,
        "The most that is randomly taken off the roll time, so that topics do not roll together. Beats "
        "log.roll.jitter.hours.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.roll.jitter.hours", INT, 0, at_least(0), HIGH,
        "The most hours randomly taken off the roll time.", ACTED),
    ConfigDef(
        "log.retention.ms", LONG, None, None, HIGH,
        "How long records are kept; -1 for ever. Beats the minutes and hours settings.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.retention.minutes", INT, None, None, HIGH,
        "How many minutes records are kept. Beats log.retention.hours.", ACTED),
    ConfigDef(
        "log.retention.hours", INT, 168, None, HIGH,
        "How many hours records are kept, when neither the ms nor the minutes setting is given.", ACTED),
    ConfigDef(
        "log.retention.bytes", LONG, -1, None, HIGH,
        "How many bytes a partition keeps before old segments go; -1 sets no bound.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.retention.check.interval.ms", LONG, 300_000, at_least(1), MEDIUM,
        "How often segments are checked against the retention rules.", ACTED),
    ConfigDef(
        "log.segment.delete.delay.ms", LONG, 60_000, at_least(0), HIGH,
        "How long the files of a deleted segment stay on disk for readers that still hold them.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleanup.policy", LIST, ("delete",), CLEANUP, MEDIUM,
        "What happens to old records: delete them, compact them by key, both, or neither when empty.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.enable", BOOLEAN, True, None, MEDIUM,
        "Whether compaction runs at all. Without it compacted topics, also internal ones, grow for ever.", ACTED),
    ConfigDef(
        "log.cleaner.threads", INT, 1, at_least(0), MEDIUM,
        "How many compactions may run at the same time.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, DOUBLE_MAX, None, MEDIUM,
        "The most bytes a second that compaction reads and writes together.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.dedupe.buffer.size", LONG, 134_217_728, None, MEDIUM,
        "The memory for compaction's map from key to latest offset, over all cleaners.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.io.buffer.size", INT, 524_288, at_least(0), MEDIUM,
        "Kafka's copy buffers for compaction. The compaction kernel sizes its own.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, None, MEDIUM,
        "How full the key map may get before a compaction pass ends. Fuller means longer passes.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.backoff.ms", LONG, 15_000, at_least(0), MEDIUM,
        "How long the cleaner rests when no log is worth cleaning.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, between(0, 1), MEDIUM,
        "The share of dirty bytes from which on a log is worth compacting.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.delete.retention.ms", LONG, 86_400_000, at_least(0), MEDIUM,
        "How long tombstones and transaction markers stay in a compacted log, for readers that are behind.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.min.compaction.lag.ms", LONG, 0, at_least(0), MEDIUM,
        "The least time a record stays before compaction may remove it.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), MEDIUM,
        "The most time a record may stay out of compaction's reach in a compacted log.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.index.size.max.bytes", INT, 10_485_760, at_least(4), MEDIUM,
        "The largest size of a segment's offset or time index.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.index.interval.bytes", INT, 4096, at_least(0), MEDIUM,
        "About how many bytes of log lie between two entries of the offset index.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.flush.interval.messages", LONG, LONG_MAX, at_least(1), HIGH,
        "After how many records a partition is flushed to disk. 1 means flush before every acknowledgement.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.flush.interval.ms", LONG, None, None, HIGH,
        "The longest a record stays in memory before it is flushed to disk.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.flush.scheduler.interval.ms", LONG, LONG_MAX, None, HIGH,
        "How often the flusher looks for partitions that are due, and the default of log.flush.interval.ms.", ACTED),
    ConfigDef(
        "log.flush.offset.checkpoint.interval.ms", INT, 60_000, at_least(0), HIGH,
        "How often recovery points are written, which bounds what a restart must scan.", ACTED),
    ConfigDef(
        "log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, at_least(0), HIGH,
        "How often log start offsets are written.", ACTED),
    ConfigDef(
        "log.preallocate", BOOLEAN, False, None, MEDIUM,
        "Whether a new segment file gets its full size at once.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.message.timestamp.type", STRING, "CreateTime", TIMESTAMP_TYPE, MEDIUM,
        "Whether a record carries the time the producer gave it or the time it was appended.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), MEDIUM,
        "How far a producer's timestamp may lie in the past; a record beyond that is refused.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), MEDIUM,
        "How far a producer's timestamp may lie in the future; a record beyond that is refused.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "log.initial.task.delay.ms", LONG, 30_000, at_least(0), LOW,
        "How long after the start the first retention, flush and checkpoint tasks run.", ACTED, internal=True),
    ConfigDef(
        "num.recovery.threads.per.data.dir", INT, 2, at_least(1), HIGH,
        "How many logs of a directory are recovered side by side after an unclean stop.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "num.replica.alter.log.dirs.threads", INT, None, None, HIGH,
        "Kafka's threads that move replicas between directories. Moves run in one background task here.", ACCEPTED),
    ConfigDef(
        "min.insync.replicas", INT, 1, at_least(1), HIGH,
        "How many replicas must have a record before acks=all is answered. With fewer in sync, such produces are "
        "refused.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "unclean.leader.election.enable", BOOLEAN, False, None, HIGH,
        "Whether a replica that is behind may lead when no other is left, at the price of losing records.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "producer.id.expiration.ms", INT, 86_400_000, at_least(1), LOW,
        "How long a partition remembers an idle producer, and so recognises its duplicates.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1), LOW,
        "How often idle producers are forgotten.", ACTED, internal=True),
)
# fmt: on
