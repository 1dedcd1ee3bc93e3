"""The hot loops over record batches: headers, checksums, records, varints; records for clients, to and from Arrow
columns; the way of a record that is sent; whole Produce requests; the map of compaction. No I/O.

Two twins with one behaviour, each in two modules: `_compiled` and `_compiled_client` (Cython), `_pure` and
`_pure_client`. The compiled ones are taken when they were built, unless the environment says PENSTOCK_PURE=1;
`IMPLEMENTATION` tells which serves. Tests run both and compare them.

Invariants: nothing outside the given buffers is read, whatever their bytes claim; a kernel raises `BadBatch`, `BadCrc`
or `BadRecord` and nothing else for bad bytes of a batch, and ValueError for columns that lie; no kernel knows a codec:
payloads are decompressed by `protocol`; none knows pyarrow: columns are plain buffers in Arrow's layout.

Read `shapes.py` first (what goes in and out), then `_pure.py`; for clients `_pure_builder.py`,
`_pure_sending.py` and `_pure_consumer.py`.
May import `model`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.kernels.shapes import (
    HEADER_BYTES,
    BadBatch,
    BadBytes,
    BadCrc,
    BadRecord,
    BatchHeader,
    PlainBatch,
    PlainProduce,
    Record,
    RecordFacts,
    RecordSpan,
    unsendable,
)

if TYPE_CHECKING or os.environ.get("PENSTOCK_PURE") == "1":
    from penstock.kernels import _pure as _chosen
    from penstock.kernels import _pure_client as _chosen_client
else:
    # Built without a compiler, the twins in plain Python serve.
    try:
        from penstock.kernels import _compiled as _chosen
    except ImportError:
        from penstock.kernels import _pure as _chosen
    try:
        from penstock.kernels import _compiled_client as _chosen_client
    except ImportError:
        from penstock.kernels import _pure_client as _chosen_client

IMPLEMENTATION: str = _chosen.IMPLEMENTATION

OffsetTable = _chosen.OffsetTable
check_batch = _chosen.check_batch
crc32c = _chosen.crc32c
crc_holds = _chosen.crc_holds
decode_records = _chosen.decode_records
encode_records = _chosen.encode_records
index_records = _chosen.index_records
read_header = _chosen.read_header
read_plain_produce = _chosen.read_plain_produce
retime = _chosen.retime
scan_batches = _chosen.scan_batches
splice_records = _chosen.splice_records
stamp = _chosen.stamp
unfilled = _chosen.unfilled
walk_records = _chosen.walk_records

Columns = _chosen_client.Columns
ColumnSink = _chosen_client.ColumnSink
ConsumerRecord = _chosen_client.ConsumerRecord
Desk = _chosen_client.Desk
OpenBatch = _chosen_client.OpenBatch
OpenLane = _chosen_client.OpenLane
OpenTopic = _chosen_client.OpenTopic
Place = _chosen_client.Place
RecordsBuilder = _chosen_client.RecordsBuilder
SendFront = _chosen_client.SendFront
decode_consumer_records = _chosen_client.decode_consumer_records
group_rows = _chosen_client.group_rows
murmur2 = _chosen_client.murmur2
partition_keys = _chosen_client.partition_keys
partition_of = _chosen_client.partition_of
partition_rows = _chosen_client.partition_rows
write_header = _chosen_client.write_header

__all__ = [
    "HEADER_BYTES",
    "IMPLEMENTATION",
    "BadBatch",
    "BadBytes",
    "BadCrc",
    "BadRecord",
    "BatchHeader",
    "ColumnSink",
    "Columns",
    "ConsumerRecord",
    "Desk",
    "OffsetTable",
    "OpenBatch",
    "OpenLane",
    "OpenTopic",
    "Place",
    "PlainBatch",
    "PlainProduce",
    "Record",
    "RecordFacts",
    "RecordSpan",
    "RecordsBuilder",
    "SendFront",
    "check_batch",
    "crc32c",
    "crc_holds",
    "decode_consumer_records",
    "decode_records",
    "encode_records",
    "group_rows",
    "index_records",
    "murmur2",
    "partition_keys",
    "partition_of",
    "partition_rows",
    "read_header",
    "read_plain_produce",
    "retime",
    "scan_batches",
    "splice_records",
    "stamp",
    "unfilled",
    "unsendable",
    "walk_records",
    "write_header",
]
