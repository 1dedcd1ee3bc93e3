"""What is done to logs without anybody asking: syncs, checkpoints, retention, compaction, departures."""
