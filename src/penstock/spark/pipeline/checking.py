"""Whether a pipeline keeps what its file promises, asked from anywhere: `penstock pipeline check FILE`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.home import SinkProgress
from penstock.spark.pipeline.listing import Listed
from penstock.spark.pipeline.objectives import Standing, judge, missing


def check(flow: Flow, found: Iterable[Listed], now_ms: int | None = None) -> list[Standing]:
    """Every sink of the file, as it is in `found`: how the pipeline is known here and to the cluster, as of now."""
    at_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    told = [sink for each in found if each.name == flow.name for sink in each.sinks]
    # The cluster knows queries, which several sinks may share; this machine knows sinks.
    known = {sink.query: sink for sink in told} | {sink.sink: sink for sink in told}
    return [_standing(flow, sink, known, at_ms) for sink in flow.sinks]


def _standing(flow: Flow, sink: Sink, known: Mapping[str, SinkProgress], now_ms: int) -> Standing:
    found = known.get(sink.name) or known.get(flow.query_name(sink))
    if found is None:
        return missing(sink.name, sink.fresh_within_s)
    return judge(replace(found, sink=sink.name), sink.fresh_within_s, now_ms)
