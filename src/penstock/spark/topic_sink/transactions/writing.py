"""What a task of an exactly-once sink does: one transaction, written and left open for the driver to end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from penstock.client.errors import ClientError
from penstock.client.producer import Producer
from penstock.spark.dialogue import for_process
from penstock.spark.topic_sink.delivery import STRIDE_BYTES, Landed, NotDelivered, delivered, joined, strides
from penstock.spark.topic_sink.options import SinkOptions
from penstock.spark.topic_sink.transactions.incarnation import driver_run
from penstock.spark.topic_sink.transactions.machine import Handout, TaskWrote
from penstock.spark.topic_sink.transactions.names import extra_id

if TYPE_CHECKING:
    import pyarrow as pa

_CLOSING_MS: Final = 5_000


def write(handout: Handout, options: SinkOptions, records: Iterable[tuple[str, pa.RecordBatch]]) -> TaskWrote:
    """Returns when brokers have all of it, in a transaction that is open. Raises when they have not: then it is aborted
    here, as far as this process can."""
    dialogue = for_process()
    producer = dialogue.run(_begun(handout, options))
    begun_ms, begun_s = time.time() * 1000, time.monotonic()
    try:
        found: dict[tuple[str, int], Landed] = {}
        for stride in strides(records, STRIDE_BYTES):
            for landed in dialogue.run(delivered(producer, stride)):
                key = landed.topic, landed.partition
                found[key] = joined(found[key], landed) if key in found else landed
        prepared = dialogue.run(producer.prepare())
        took_ms = (time.monotonic() - begun_s) * 1000
        return TaskWrote(prepared, tuple(found[key] for key in sorted(found)), begun_ms, took_ms)
    except ClientError as failure:
        raise NotDelivered(f"the rows of a task could not be written in a transaction: {failure}") from failure
    finally:
        # What is prepared is left alone; anything else is aborted.
        dialogue.run(producer.close(_CLOSING_MS))


async def _begun(handout: Handout, options: SinkOptions) -> Producer:
    slot, attempt, number = _task()
    pooled = attempt == 0 and slot < len(handout.pool) and _attempts_are_told_apart(handout, options)
    name = (
        handout.slot(slot).transactional_id
        if pooled
        else extra_id(handout.query_id, handout.run, handout.driver, number)
    )
    mine = {"transactional_id": name, "transaction_timeout_ms": str(handout.timeout_ms), "acks": "all"}
    settings: dict[str, Any] = {**options.producer_settings, **mine}
    producer = Producer(**settings)
    if pooled:
        producer.adopt(handout.pool[slot], handout.transaction_version)
    try:
        await producer.begin()
    except BaseException:
        await producer.close(0)
        raise
    return producer


def _attempts_are_told_apart(handout: Handout, options: SinkOptions) -> bool:
    """Whether no other attempt can be the first one of this task too.

    The tasks of a stage that Spark begins again are counted anew, and two of them would write as one producer. It does
    that where executors can lose what was shuffled, unless it is not allowed to; a driver by itself loses nothing.
    """
    return options.stages_once or driver_run() == handout.run


def _task() -> tuple[int, int, int]:
    """The number of the task, how often it was tried before, and Spark's own number of this attempt."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "a task runs this"
    return context.partitionId(), context.attemptNumber(), context.taskAttemptId()
