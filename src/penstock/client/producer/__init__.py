"""The producer: records in, batches out, nothing lost and nothing twice.

Read `producer.py` first (what users call; the work of `send` is done by the kernels), then the way of a record:
`accumulator.py` (into a batch), `lane.py` (the order of a partition's batches and their sequence numbers), `sender.py`
(which batch to which broker) and `answers.py` (what became of it). `topic_lanes.py` chooses partitions, `parked.py`
holds records that must wait, `bulk.py` cuts many rows into batches, `delivery.py` is what callers hold on to.
`transactions/` is for producers with a `transactional_id`; the others pay nothing for it.

Invariants: a record that `send` took is delivered or fails, exactly once, whatever its waiters do; with idempotence a
partition has the records of a producer in the order of `send`, once each; a record costs one call of the kernel, and
no future, timer or task of its own; user code is never called under the lock; the collector does not look
into deliveries, so a batch that is settled keeps nothing that could lead back to one.
"""

from penstock.client.producer.delivery import BatchReport, BulkDelivery, Delivery, Report, Span
from penstock.client.producer.producer import Producer
from penstock.client.producer.transactions import PreparedTransaction, ProducerEpoch

__all__ = [
    "BatchReport",
    "BulkDelivery",
    "Delivery",
    "PreparedTransaction",
    "Producer",
    "ProducerEpoch",
    "Report",
    "Span",
]
