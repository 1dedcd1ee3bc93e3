"""Forgetting checkpoints: what will happen is said before anything is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.declared.mistakes import did_you_mean
from penstock.spark.errors import BadOption
from penstock.spark.pipeline import places
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind
from penstock.spark.pipeline.mirroring import forgotten
from penstock.spark.pipeline.starts import forget_wish, table_offsets, wish_start
from penstock.spark.pipeline.wiring import topic_options


@dataclass(frozen=True, slots=True)
class Reset:
    """What forgetting the checkpoint of one sink means."""

    sink: str
    kind: str
    checkpoint: str
    batch: int
    """The last one that was committed, -1 if there is none."""
    start: str | None
    """Where it is to begin; None leaves that to the table or the source."""
    words: str


def plan_reset(flow: Flow, names: Sequence[str] = (), start: str | None = None) -> list[Reset]:
    """One for each sink, or for those that are named. Tables that know their offsets cannot be told where to begin."""
    for name in names:
        if flow.sink(name) is None:
            raise BadOption(f"{flow.name} has no sink {name!r}{did_you_mean(name, [sink.name for sink in flow.sinks])}")
    chosen = [sink for sink in flow.sinks if not names or sink.name in names]
    return [_plan(flow, sink, start) for sink in chosen]


def _plan(flow: Flow, sink: Sink, start: str | None) -> Reset:
    offsets = table_offsets(flow, sink) if sink.kind is SinkKind.TABLE else {}
    if offsets and start is not None:
        raise BadOption(
            f"sink {sink.name}: table {sink.target} has its own offsets and goes on after them, wherever a query "
            "begins: leave --from away, name other sinks with --sink, or fill another table"
        )
    return Reset(
        sink=sink.name,
        kind=sink.kind.value,
        checkpoint=flow.checkpoint(sink),
        batch=places.last_batch(flow.checkpoint(sink)),
        start=start,
        words=_consequence(flow, sink, offsets, start),
    )


def _consequence(flow: Flow, sink: Sink, offsets: dict[str, int], start: str | None) -> str:
    sources, steps = flow.lineage(sink)
    if offsets:
        state = "; windows, joins and other state of its steps begin empty" if steps else ""
        return f"goes on at the offsets of table {sink.target}: nothing is doubled or skipped{state}"
    begin = start or " and ".join(dict.fromkeys(source.start for source in sources))
    again = {
        SinkKind.TABLE: f"table {sink.target} has no offsets and is filled",
        SinkKind.TOPIC: f"records are sent to {sink.target} again",
        SinkKind.PARQUET: f"rows are written below {sink.target} again, beside those that are there",
        SinkKind.CONSOLE: "rows are shown again",
        SinkKind.FOREACH_BATCH: f"{sink.target} is called again, with batches counted from 0",
    }[sink.kind]
    return f"begins anew at {begin}: {again}"


def carry_out(flow: Flow, resets: Sequence[Reset]) -> None:
    """Removes the checkpoints. The pipeline must not be running."""
    for reset in resets:
        sink = flow.sink(reset.sink)
        assert sink is not None, "a plan names sinks of its flow"
        for mate in flow.mates(sink):
            _forget_decisions(flow, mate)
        if flow.mirror(sink):
            forgotten(flow, sink)
        else:
            places.remove(reset.checkpoint)
        if reset.start is None:
            forget_wish(flow, sink)
        else:
            wish_start(flow, sink, reset.start)


def _forget_decisions(flow: Flow, sink: Sink) -> None:
    """Before the checkpoint goes, which has the name that they go by. A table that shares the query needs them: it goes
    on only where the topic stands as it does."""
    if not sink.exactly_once or not places.is_begun(flow.checkpoint(sink)):
        return
    if any(mate.kind is SinkKind.TABLE and table_offsets(flow, mate) for mate in flow.mates(sink)):
        return
    from penstock.spark.topic_sink.options import SinkOptions
    from penstock.spark.topic_sink.transactions.plan import forgotten as forgotten_decisions

    forgotten_decisions(SinkOptions.of({**topic_options(flow, sink), "checkpointLocation": flow.checkpoint(sink)}))
