"""How batches reach topics exactly once: what the sink's writers call, on the driver and in tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.client.settings import AdminSettings, ConsumerSettings
from penstock.spark.dialogue import admin_for, for_process, reader_for
from penstock.spark.lake import offset_log
from penstock.spark.topic_sink.options import SinkOptions
from penstock.spark.topic_sink.transactions import machine
from penstock.spark.topic_sink.transactions.audit import SinkAudit, gather, judge
from penstock.spark.topic_sink.transactions.driving import Driving
from penstock.spark.topic_sink.transactions.incarnation import driver_run
from penstock.spark.topic_sink.transactions.machine import Handout, TaskWrote
from penstock.spark.topic_sink.transactions.mark import Mark
from penstock.spark.topic_sink.transactions.records import Standing
from penstock.spark.topic_sink.transactions.writing import write

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("penstock.spark.topic_sink")

RELEASED_WITHIN_MS: Final = "10000"
"""Whoever ends waits no longer for brokers that are gone."""
SLOTS_AT_FIRST: Final = 2
"""A pool grows to as many as there were tasks."""


@dataclass(frozen=True, slots=True)
class ExactlyOnce:
    """One batch of one query, in transactions. Pickles: tasks have what the plan has handed out."""

    options: SinkOptions
    handout: Handout

    @classmethod
    def planned(cls, options: SinkOptions) -> ExactlyOnce:
        """On the driver, before the tasks of a batch run."""
        query_id = offset_log.query_id_of(options.checkpoint)
        driving = _driving(query_id, options)
        return cls(options, for_process().run(_planned(driving, query_id, options)))

    def deliver(self, records: Iterable[tuple[str, pa.RecordBatch]]) -> TaskWrote:
        """In a task."""
        return write(self.handout, self.options, records)


async def _planned(driving: Driving, query_id: str, options: SinkOptions) -> Handout:
    steps = machine.plan(
        query_id,
        driver_run(),
        slots=SLOTS_AT_FIRST,
        transaction_version=await driving.transaction_version(),
        timeout_ms=options.transaction_timeout_ms,
    )
    return await driving.run(steps)


def settled(options: SinkOptions, query_id: str) -> Standing | None:
    """Where a query stands in the ledger whose checkpoint is lost, after it was ended for good."""
    return for_process().run(_driving(query_id, options).run(machine.settle()))


def forgotten(options: SinkOptions) -> None:
    """Before the checkpoint of a query is removed: nothing of it stays in the ledger."""
    query_id = offset_log.query_id_of(options.checkpoint)
    for_process().run(_driving(query_id, options).run(machine.forget()))


def commit(options: SinkOptions, handout: Handout, tasks: Sequence[TaskWrote], batch_id: int) -> None:
    """On the driver, when all tasks have written."""
    ranges = offset_log.ranges_of(options.checkpoint, batch_id).ranges
    driving = _driving(handout.query_id, options, handout)
    standing = for_process().run(driving.run(machine.commit(handout, batch_id, ranges, tasks)))
    assert standing.decision is not None, "it was decided"
    _log.info("batch %d is committed as decision %d", batch_id, standing.sequence)


def abort(options: SinkOptions, handout: Handout, tasks: Sequence[TaskWrote], count: int, batch_id: int) -> None:
    """On the driver, when a task or a commit has failed. Never fails: the next plan aborts what this could not."""
    try:
        driving = _driving(handout.query_id, options, handout)
        for_process().run(driving.run(machine.abort(handout, tasks, count)))
        _log.warning("batch %d failed; what it wrote is not shown to readers of committed records", batch_id)
    except Exception as failure:
        _log.warning(
            "batch %d failed, and its transactions could not be aborted; the next start does, or their time: %s",
            batch_id,
            failure,
        )


def release(options: SinkOptions, run: str) -> None:
    """On the driver, when its query has ended. Never fails: the next start aborts what this could not."""
    try:
        query_id = offset_log.query_id_of(options.checkpoint)
        patient = {**options.producer_settings, "default_api_timeout_ms": RELEASED_WITHIN_MS}
        driving = _driving(query_id, replace(options, producer_settings=patient))
        for_process().run(driving.run(machine.release(query_id, run)))
    except Exception as failure:
        _log.warning("what is open of %s is aborted by the next start, or its time: %s", options.topic, failure)


def _driving(query_id: str, options: SinkOptions, handout: Handout | None = None) -> Driving:
    settings = options.producer_settings
    reading = {**_those_of(ConsumerSettings, settings), "isolation_level": "read_committed"}
    return Driving(
        query_id,
        _writing(settings),
        admin_for(_those_of(AdminSettings, settings)),
        reader_for(reading),
        Mark(options.checkpoint),
        timeout_ms=options.transaction_timeout_ms,
        driver=None if handout is None else handout.driver,
        transaction_version=None if handout is None else handout.transaction_version,
    )


def _those_of(kind: type[Any], settings: Mapping[str, str]) -> dict[str, str]:
    names = {setting.name for setting in fields(kind)}
    return {name: value for name, value in settings.items() if name in names}


_OF_ROWS: Final = frozenset({"acks", "linger_ms", "compression", "partitioner"})
"""What a user sets for the rows is not for decisions."""


def _writing(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in _OF_ROWS}


def audited(options: SinkOptions) -> SinkAudit:
    """What ledger and topics prove of the query whose checkpoint that is."""
    settings = options.producer_settings
    query_id = offset_log.query_id_of(options.checkpoint)
    reader = reader_for({**_those_of(ConsumerSettings, settings), "isolation_level": "read_committed"})
    admin = admin_for(_those_of(AdminSettings, settings))
    return judge(for_process().run(gather(admin, reader, query_id)))
