"""Brings a shard to the state that its log describes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from penstock.kernels import scan_batches
from penstock.model.ids import Offset
from penstock.protocol.batch import is_control, is_transactional, read_records
from penstock.protocol.control import read_marker

if TYPE_CHECKING:
    from penstock.coordinators.decision import StateRecord
    from penstock.kernels import BatchHeader, Record
    from penstock.server.coordinating.records import RecordReader
    from penstock.storage.log import Log

READ_BYTES: Final = 1 << 18
"""What is read at once. Reading is disk and cannot be interrupted, so it is kept small."""


class Replayed(Protocol):
    """The part of a shard that a replay speaks to."""

    def apply(self, record: StateRecord, offset: Offset) -> None: ...
    def apply_pending(self, producer_id: int, record: StateRecord, offset: Offset) -> None: ...
    def on_marker(self, producer_id: int, *, committed: bool) -> None: ...


class Replay:
    """Gives a shard every record up to the end of the log, also those that are not committed yet, in their order.

    Records of a transaction are pending until its marker comes. What is still pending at the end stays so: the marker
    is yet to be written, and the shard hears of it then.
    """

    __slots__ = ("_log", "_reader", "_shard", "_source", "_unknown", "records")

    def __init__(self, source: Log, reader: RecordReader, shard: Replayed, log: logging.Logger) -> None:
        self._source, self._reader, self._shard, self._log = source, reader, shard, log
        self._unknown = 0
        self.records = 0

    def steps(self) -> Iterator[None]:
        """Pauses at each batch."""
        source = self._source
        position = source.log_start
        while position < source.written:
            read = source.read(position, max_bytes=READ_BYTES, limit=source.written, at_least_one=True)
            data = b"".join(span.read() for span in read.spans)
            yield
            view = memoryview(data)
            for start, header in scan_batches(view):
                # A read begins with the batch that holds the offset; its last record may be all that is asked for.
                if header.last_offset >= position:
                    self._batch(header, read_records(view[start : start + header.size]))
                    yield
            if read.end <= position:
                break  # what is left was compacted away
            position = read.end
        if self._unknown:
            self._log.warning("%s holds %d records of unknown types; they are passed over", source.name, self._unknown)

    def _batch(self, header: BatchHeader, records: list[Record]) -> None:
        if is_control(header.attributes):
            self._control(header.producer_id, records)
            return
        self.records += len(records)
        producer_id = header.producer_id if is_transactional(header.attributes) else None
        for record in records:
            state = self._reader.read(record.key, record.value)
            if state is None:
                self._unknown += 1
            elif producer_id is None:
                self._shard.apply(state, Offset(record.offset))
            else:
                self._shard.apply_pending(producer_id, state, Offset(record.offset))

    def _control(self, producer_id: int, records: list[Record]) -> None:
        """Compaction may have left a control batch without records; it ends nothing."""
        for record in records:
            marker = read_marker(record)
            if marker is not None:
                self._shard.on_marker(producer_id, committed=marker.committed)
