"""What a producer counts: plain integers, read when somebody asks."""

from __future__ import annotations


class ProducerMetrics:
    """Totals since the start."""

    __slots__ = (
        "batches_sent", "bytes_sent", "connection_failures", "records_failed", "records_sent", "requests", "retries",
        "splits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records_sent = 0
        self.records_failed = 0
        self.batches_sent = 0
        self.bytes_sent = 0
        self.requests = 0
        self.retries = 0
        self.splits = 0
        self.connection_failures = 0

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}
