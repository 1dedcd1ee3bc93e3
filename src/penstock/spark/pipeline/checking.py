"""Whether a pipeline keeps what its file promises, asked from anywhere: `penstock pipeline check FILE`."""

from __future__ import annotations

import time
from collections.abc import Iterable

from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.listing import Listed
from penstock.spark.pipeline.objectives import Standing, judge, missing


def check(flow: Flow, found: Iterable[Listed], now_ms: int | None = None) -> list[Standing]:
    """Every sink of the file, as it is in `found`: how the pipeline is known here and to the cluster, as of now."""
    at_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    known = {sink.sink: sink for each in found if each.name == flow.name for sink in each.sinks}
    return [
        judge(known[sink.name], sink.fresh_within_s, at_ms)
        if sink.name in known
        else missing(sink.name, sink.fresh_within_s)
        for sink in flow.sinks
    ]
