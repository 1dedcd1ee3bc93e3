"""DescribeLogDirs (35), versions 1-5: tell sizes and lags of the replicas in each log directory.

Notes: 2 flexible; 3 top-level error; 4 total and usable bytes; 5 cordoned directories.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int16, int32, int64, message, string, struct


@message(key=35, kind="request", versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = array("DescribableLogDirTopic", nullable=True)

    @struct()
    class DescribableLogDirTopic:
        topic: str = string()
        partitions: list[int] = array(int32)


@message(key=35, kind="response", versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = array("DescribeLogDirsResult")

    @struct()
    class DescribeLogDirsResult:
        error_code: int = int16()
        log_dir: str = string()
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = array("DescribeLogDirsTopic")
        total_bytes: int = int64(since=4, default=-1, ignorable=True)
        usable_bytes: int = int64(since=4, default=-1, ignorable=True)
        is_cordoned: bool = boolean(since=5, ignorable=True)

    @struct()
    class DescribeLogDirsTopic:
        name: str = string()
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = array("DescribeLogDirsPartition")

    @struct()
    class DescribeLogDirsPartition:
        partition_index: int = int32()
        partition_size: int = int64()
        offset_lag: int = int64()
        is_future_key: bool = boolean()
