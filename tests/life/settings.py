"""What a node is told, so that a year passes in an hour: Kafka's defaults, divided by ten thousand where that is allowed."""

from __future__ import annotations

TIMES_FASTER = 10_000
WEEK_MS = 7 * 24 * 3_600 * 1_000 // TIMES_FASTER
DAY_MS = WEEK_MS // 7

NODE = {
    # A client that asks about a topic which was just deleted must not bring it back.
    "auto.create.topics.enable": "false",
    # A megabyte is the smallest segment that there is; segments end by their age here.
    "log.segment.bytes": str(1 << 20),
    "log.roll.ms": str(DAY_MS),
    "log.retention.ms": str(WEEK_MS),
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.cleaner.max.compaction.lag.ms": str(DAY_MS),
    "log.cleaner.delete.retention.ms": str(DAY_MS),
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "offsets.topic.segment.bytes": str(1 << 20),
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
    "producer.id.expiration.ms": str(DAY_MS),
    "producer.id.expiration.check.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": str(20 << 10),
    "metadata.log.max.snapshot.interval.ms": "5000",
    "metadata.log.segment.ms": str(DAY_MS),
    "metadata.max.retention.ms": str(WEEK_MS),
    "metadata.max.retention.bytes": str(1 << 20),
    "leader.imbalance.check.interval.seconds": "10",
    "connections.max.idle.ms": "30000",
}

LEDGER = {"segment.ms": str(DAY_MS), "retention.ms": str(2 * WEEK_MS)}
"""What is read by everybody: its readers have two weeks, which are two minutes, and a killed node costs them seconds."""
