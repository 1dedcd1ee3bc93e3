"""The settings of a topic that its log looks at. `TopicSettings` has them all; a log asks for no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class LogSettings(Protocol):
    """Read at every use, so that replacing `Log.settings` takes effect at once."""

    @property
    def segment_bytes(self) -> int: ...
    @property
    def segment_ms(self) -> int: ...
    @property
    def segment_jitter_ms(self) -> int: ...
    @property
    def segment_index_bytes(self) -> int: ...
    @property
    def index_interval_bytes(self) -> int: ...
    @property
    def retention_ms(self) -> int: ...
    @property
    def retention_bytes(self) -> int: ...
    @property
    def file_delete_delay_ms(self) -> int: ...
    @property
    def compacts(self) -> bool: ...
    @property
    def deletes(self) -> bool: ...
    @property
    def min_cleanable_dirty_ratio(self) -> float: ...
    @property
    def delete_retention_ms(self) -> int: ...
    @property
    def min_compaction_lag_ms(self) -> int: ...
    @property
    def max_compaction_lag_ms(self) -> int: ...
    @property
    def flush_messages(self) -> int: ...
    @property
    def preallocate(self) -> bool: ...


_NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class PlainLogSettings:
    """Kafka's defaults, for a log that is no topic (the metadata log) and for tests."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    compacts: bool = False
    deletes: bool = True
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 24 * 3_600_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _NEVER
    flush_messages: int = _NEVER
    preallocate: bool = False
