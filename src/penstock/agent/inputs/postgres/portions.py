"""Records to be become portions: values as JSON, keys, and which of them are tombstones. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from penstock.agent.inputs.postgres.records.envelope import RowEvent
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, Origin, Portion
from penstock.conditions.paths import Fields

FIELDS_OVERHEAD_BYTES: Final = 1_536
"""What an envelope costs in memory besides its texts."""

_encode = msgspec.json.Encoder().encode


class Gathered:
    """Records that go on together."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.fields: list[Fields] = []
        self._keys: list[bytes | None] = []
        self._times_ms: list[int] = []
        self._nulls: set[int] = set()
        self.bytes = 0
        """Of the values."""

    def __len__(self) -> int:
        return len(self.values)

    def add(self, event: RowEvent) -> None:
        value = b"" if event.tombstone else _encode(event.fields)
        if event.tombstone:
            self._nulls.add(len(self.values))
        self.values.append(value)
        self.fields.append(event.fields)
        self._keys.append(event.key)
        self._times_ms.append(event.time_ms)
        self.bytes += len(value)

    def portion(self, origin: Origin) -> Portion:
        """All of them. What is added later is of another."""
        return Portion(
            origin,
            self.values,
            fields=self.fields,
            timestamps_ms=self._times_ms,
            keys=self._keys,
            nulls=frozenset(self._nulls),
            faithful=True,
            size_bytes=2 * self.bytes + (EVENT_OVERHEAD_BYTES + FIELDS_OVERHEAD_BYTES) * len(self.values),
        )
