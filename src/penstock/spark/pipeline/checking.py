"""Whether a pipeline keeps what its file promises, asked from anywhere: `penstock pipeline check FILE`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.home import SinkProgress
from penstock.spark.pipeline.listing import Listed, elsewhere, here, merged, with_lag_of_now
from penstock.spark.pipeline.objectives import Standing, judge, missing
from penstock.spark.pipeline.watching import settings_of
from penstock.spark.pipeline.wiring import DEFAULT_BOOTSTRAP
from penstock.spark.source.client_settings import security_of


def look(flow: Flow) -> tuple[list[Standing], list[str]]:
    """Every sink of the file as of now, and the addresses at which nobody answered. Raises what keeps the flow's own
    brokers from being asked."""
    bootstrap = flow.bootstrap or DEFAULT_BOOTSTRAP
    # Whose progress it is, is told to the cluster by the name of the pipeline.
    remote = elsewhere(bootstrap, security_of({**flow.kafka, "bootstrap.servers": bootstrap}))
    found = [each for each in merged(here(), remote) if each.name == flow.name]
    silent: list[str] = []
    return check(flow, with_lag_of_now(found, lambda _: settings_of(flow), silent.append)), silent


def check(flow: Flow, found: Iterable[Listed], now_ms: int | None = None) -> list[Standing]:
    """Every sink of the file, as it is in `found`: how the pipeline is known here and to the cluster. Pure, given the
    time."""
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
