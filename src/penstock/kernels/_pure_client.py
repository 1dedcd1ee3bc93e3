"""The kernels of clients in plain Python, gathered: the twin of `_compiled_client`."""

from penstock.kernels._pure import IMPLEMENTATION
from penstock.kernels._pure_builder import RecordsBuilder, write_header
from penstock.kernels._pure_columns import Columns, group_rows, murmur2, partition_keys, partition_of, partition_rows
from penstock.kernels._pure_consumer import ColumnSink, ConsumerRecord, decode_consumer_records
from penstock.kernels._pure_sending import Desk, OpenBatch, OpenLane, OpenTopic, Place, SendFront

__all__ = [
    "IMPLEMENTATION",
    "ColumnSink",
    "Columns",
    "ConsumerRecord",
    "Desk",
    "OpenBatch",
    "OpenLane",
    "OpenTopic",
    "Place",
    "RecordsBuilder",
    "SendFront",
    "decode_consumer_records",
    "group_rows",
    "murmur2",
    "partition_keys",
    "partition_of",
    "partition_rows",
    "write_header",
]
