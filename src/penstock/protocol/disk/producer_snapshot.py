"""A producer-state snapshot file (`.snapshot` beside a segment): what a log knew of its producers at an offset."""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, int64, message, struct, uint32


@message(kind="data", versions="1", flexible="none")
class ProducerSnapshot:
    crc: int = uint32()
    producer_entries: list[ProducerEntry] = array("ProducerEntry")

    @struct()
    class ProducerEntry:
        producer_id: int = int64()
        epoch: int = int16()
        last_sequence: int = int32()
        last_offset: int = int64()
        offset_delta: int = int32()
        timestamp: int = int64()
        coordinator_epoch: int = int32()
        current_txn_first_offset: int = int64()
