"""Brings a shard to the state that its log describes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from penstock.kernels import scan_batches
from penstock.protocol.batch import is_control, is_transactional, read_records
from penstock.protocol.control import read_marker
from penstock.server.drivers.coordinator_records import decode_record

if TYPE_CHECKING:
    from penstock.coordinators.decision import StateRecord
    from penstock.kernels import BatchHeader, Record
    from penstock.storage.log import Log

log = logging.getLogger("penstock.groups")

READ_BYTES: Final = 1 << 18
"""What is read at once. Reading is disk and cannot be interrupted, so it is kept small."""


class Replay:
    """Applies every record up to the end of the log, also those that are not committed yet.

    Records of a transaction count when its marker says so. Nobody here writes such records yet, but a directory that
    Apache Kafka has left may hold some.
    """

    __slots__ = ("_apply", "_open", "_source", "_unknown", "records")

    def __init__(self, source: Log, apply: Callable[[StateRecord], None]) -> None:
        self._source, self._apply = source, apply
        self._open: dict[int, list[StateRecord]] = {}
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
            log.warning("%s holds %d records of unknown types; they are passed over", source.name, self._unknown)

    def _batch(self, header: BatchHeader, records: list[Record]) -> None:
        if is_control(header.attributes):
            for record in records:
                marker = read_marker(record)
                held = self._open.pop(header.producer_id, ()) if marker is not None else ()
                if marker is not None and marker.committed:
                    for each in held:
                        self._apply(each)
            return
        apply = self._apply
        if is_transactional(header.attributes):
            apply = self._open.setdefault(header.producer_id, []).append
        self.records += len(records)
        for record in records:
            state = decode_record(record.key, record.value)
            if state is None:
                self._unknown += 1
            else:
                apply(state)
