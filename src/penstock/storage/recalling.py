"""Finding again what a producer snapshot does not hold: the batches before a producer's last one.

Kafka's snapshot keeps the last batch of each producer. Of several that were under way when a node stopped cleanly, the
others would be taken for holes when they are repeated, and written twice in the end. They are in the log, not far
before its end, so they are looked for when somebody repeats one, once for each producer of a snapshot.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from penstock.kernels import scan_batches
from penstock.storage.producers import BATCHES_KEPT, CONTROL, Batch, advance_sequence

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader
    from penstock.model.ids import Offset
    from penstock.storage.producers import Producer, Producers
    from penstock.storage.reading import Read

_STEPS_BACK: Final = (500, 5_000, 50_000)
"""How many offsets to go back: others may have written in between, or little."""

_BYTES_MAX: Final = 4 << 20
_READ_BYTES: Final = 1 << 20
_HALF_ROUND: Final = 1 << 30


class Source(Protocol):
    """The log that is looked through."""

    producers: Producers
    log_start: Offset

    def read(self, offset: int, *, max_bytes: int, limit: int, at_least_one: bool) -> Read:
        """As `Log.read`."""


def recall(log: Source, header: BatchHeader) -> bool:
    """Looks for earlier batches of the producer of `header`, if it may be one of them; whether any was found."""
    producer = log.producers.get(header.producer_id)
    if producer is None or not producer.from_snapshot or producer.epoch != header.producer_epoch:
        return False
    if not producer.batches or not _is_earlier(header.base_sequence, producer):
        return False
    producer.from_snapshot = False
    oldest = producer.batches[0]
    until = oldest.last_offset - oldest.offset_delta
    missing = BATCHES_KEPT - len(producer.batches)
    found: deque[Batch] = deque()
    for step in _STEPS_BACK:
        start = max(log.log_start, until - step)
        found = _batches(log, header, start, until, missing)
        if len(found) == missing or start == log.log_start:
            break
    producer.batches.extendleft(reversed(found))
    return bool(found)


def _is_earlier(sequence: int, producer: Producer) -> bool:
    """Whether a sequence lies before the next one, and not behind a hole after it; they go round."""
    ahead = advance_sequence(producer.last_sequence, 1 - sequence)
    return 0 < ahead < _HALF_ROUND


def _batches(log: Source, header: BatchHeader, start: int, until: int, most: int) -> deque[Batch]:
    """The last batches in [start, until) that the producer wrote in the epoch of `header`."""
    found: deque[Batch] = deque(maxlen=most)
    left = _BYTES_MAX
    while start < until and left > 0:
        read = log.read(start, max_bytes=_READ_BYTES, limit=until, at_least_one=True)
        if not read.size:
            break
        left -= read.size
        for _, each in scan_batches(b"".join(span.read() for span in read.spans)):
            same = (each.producer_id, each.producer_epoch) == (header.producer_id, header.producer_epoch)
            if same and not each.attributes & CONTROL:
                last = advance_sequence(each.base_sequence, each.last_offset_delta)
                found.append(
                    Batch(each.base_sequence, last, each.last_offset, each.last_offset_delta, each.max_timestamp)
                )
        start = read.end
    # Cut short, what was found is not what comes right before the batch that is known.
    return found if start >= until else deque()
