"""What a store tells about itself, for DescribeLogDirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from penstock.model.ids import PartitionKey, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory


class LogReport(NamedTuple):
    """One replica. `offset_lag`: how far a future log is behind the current one, or a log behind its watermark."""

    name: TopicPartition
    topic_id: Uuid
    size_bytes: int
    offset_lag: int
    future: bool


class DirectoryReport(NamedTuple):
    """One log directory; `why_offline` is None while it works."""

    path: str
    directory_id: Uuid | None
    why_offline: str | None
    total_bytes: int
    usable_bytes: int
    logs: list[LogReport]
    cordoned: bool = False


def report_of(
    directory: LogDirectory, logs: Sequence[Log], futures: Collection[Log], current: Mapping[PartitionKey, Log]
) -> DirectoryReport:
    total_bytes, usable_bytes = directory.room()
    return DirectoryReport(
        directory.path,
        directory.id,
        directory.why_offline,
        total_bytes,
        usable_bytes,
        [_log_report(log, log in futures, current) for log in logs],
        directory.cordoned,
    )


def _log_report(log: Log, future: bool, current: Mapping[PartitionKey, Log]) -> LogReport:
    lag = max(0, log.committed - log.next)
    leader = current.get(PartitionKey(log.topic_id, log.name.partition)) if future else None
    if leader is not None:
        lag = max(0, leader.next - log.next)
    return LogReport(log.name, log.topic_id, log.size_bytes, lag, future)
