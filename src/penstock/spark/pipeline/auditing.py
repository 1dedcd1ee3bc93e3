"""The proof of a flow's exactly-once topics: what its sinks have decided against what the topics show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.wiring import topic_options

if TYPE_CHECKING:
    from penstock.spark.topic_sink.transactions.audit import SinkAudit


def audit_topics(flow: Flow) -> list[tuple[str, SinkAudit]]:
    """By sink, those that write in transactions. `Missing` when one has no checkpoint, or never decided anything."""
    from penstock.spark.topic_sink.options import SinkOptions
    from penstock.spark.topic_sink.transactions.plan import audited

    found = []
    for sink in flow.sinks:
        if sink.exactly_once:
            options = {**topic_options(flow, sink), "checkpointLocation": flow.checkpoint(sink)}
            found.append((sink.name, audited(SinkOptions.of(options))))
    return found
