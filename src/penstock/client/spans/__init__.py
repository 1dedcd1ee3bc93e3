"""Reading exact ranges of offsets: no group, no position to keep, each range to its very end or an error.

    async with SpanReader(bootstrap_servers="localhost:9092") as reader:
        async for item in reader.read([Span("orders", "", 0, 100, 5_000)]):
            ...  # Piece: records of one span in Arrow columns; SpanEnd: that was all of it

    shapes.py   Span, Piece, SpanEnd, what is raised     cursor.py   how far one span is; what it holds and lacks
    calls.py    one fetch at a time per broker           reading.py  one read: whom to ask, what answers mean
    reader.py   `SpanReader`: settings and connections, kept from read to read

May import client, transport and below; no pyarrow. Records are handled by batches: nothing here costs by the record.

Invariants: every offset of a span is given once, or counted as missing; pieces of one span come in order, `SpanEnd`
after the last of them; the next fetch is under way while the caller works on what came; what never comes is an error
after `default_api_timeout_ms` of waiting, in which the time the caller took does not count.

Read `cursor.py` first, then `reading.py`.
"""

from penstock.client.consumer.partition import CorruptBatch
from penstock.client.spans.reader import SpanReader
from penstock.client.spans.shapes import EndLost, Piece, Span, SpanEnd, SpanLost, TopicGone, TopicReplaced

__all__ = [
    "CorruptBatch",
    "EndLost",
    "Piece",
    "Span",
    "SpanEnd",
    "SpanLost",
    "SpanReader",
    "TopicGone",
    "TopicReplaced",
]
