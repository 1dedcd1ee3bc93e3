"""What a node is told, so that a year passes in an hour: Kafka's defaults, by ten thousand where that is allowed."""

from __future__ import annotations

from tests.patience import within

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
    # Shorter than by the scale: a node is killed every week, and what it missed is to be gone before the next time.
    "penstock.log.dir.stray.retention.ms": str(DAY_MS),
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
    "producer.id.expiration.check.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": str(20 << 10),
    "metadata.log.max.snapshot.interval.ms": "5000",
    "metadata.log.segment.ms": str(DAY_MS),
    "metadata.max.retention.ms": str(WEEK_MS),
    "metadata.max.retention.bytes": str(1 << 20),
    "leader.imbalance.check.interval.seconds": "10",
    "connections.max.idle.ms": "30000",
    # Failures are found as in life: those are seconds already, and a busy machine is not to be taken for one.
    "broker.session.timeout.ms": "9000",
    "replica.lag.time.max.ms": "30000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.request.timeout.ms": "2000",
}

LEDGER = {"segment.ms": str(DAY_MS), "retention.ms": str(2 * WEEK_MS)}
"""What everybody reads: readers have two weeks for it, which are two minutes; a killed node costs them seconds."""

LINES = {"segment.ms": str(DAY_MS), "retention.ms": str(min(within(3 * WEEK_MS), 8 * WEEK_MS))}
"""Of the agent's lines: Spark takes a minute or two for its first batches on a busy machine. What is kept for longer is
not there yet when a quarter of the life is over."""

SETTLED_S = max(int(kept["retention.ms"]) for kept in (LEDGER, LINES)) / 1_000
"""Before so much time nothing is as it stays: the longest retention has not begun to delete."""
