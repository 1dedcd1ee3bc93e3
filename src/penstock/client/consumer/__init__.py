"""Reading topics: the consumer, alone or in a group. asyncio; may import client, transport and below.

`Consumer` (consumer.py) is what applications hold; `Engine` wires what runs behind it. The way of a record:

    fetching.py   asks brokers, one fetch under way each       fetch_session.py, fetch_replies.py
    batches.py    opens what came: which batches are shown
    partition.py  one assigned partition: position, buffer, what it waits for
    inbox.py      the line of partitions that have something; polls take from it in turn
    commits.py    how far the application is, and telling the group

`navigation.py` finds where to read (committed offsets, resets, truncation), with `lookups.py`; `ownership.py` is what
happens when a group gives or takes partitions; `alone.py` stands in for the group (`group/`) when there is none.

Invariants: a record is given once, in order, and only while its partition is ours; nothing is taken from the buffer
without being returned, so a cancelled poll loses nothing; a reply to a question from before a seek is dropped; an
automatic commit covers only what the application has come back from; nothing outlives `close`.

Read `partition.py` first, then `inbox.py`, `fetching.py`, `engine.py`.
"""

from penstock.client.consumer.consumer import Consumer
from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp
from penstock.client.consumer.partition import CorruptBatch
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition

__all__ = [
    "Consumer",
    "ConsumerRecord",
    "CorruptBatch",
    "GroupMetadata",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
]
