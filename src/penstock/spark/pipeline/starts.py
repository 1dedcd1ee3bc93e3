"""Where a sink begins when it has no checkpoint, and the wish that `reset --from` leaves for it.

A lake table knows which offsets are in it. A query without a checkpoint that feeds one goes on from there, so that a
lost checkpoint neither doubles nor skips; everything else begins where its source says. A topic that shares its query
has to stand where the table does (`holding`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.spark.errors import BadOption
from penstock.spark.pipeline import places
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind
from penstock.spark.pipeline.holding import hold
from penstock.spark.pipeline.wiring import lake_options

if TYPE_CHECKING:
    from penstock.spark.lake.store import TableStore


@dataclass(frozen=True, slots=True)
class Begin:
    """`start` replaces what the sources say, None leaves it; `why` is for people."""

    start: str | None
    why: str


def begin_of(flow: Flow, sink: Sink) -> Begin:
    """Looked up each time a query is about to start."""
    checkpoint = flow.checkpoint(sink)
    if places.is_begun(checkpoint):
        return Begin(None, f"goes on from its checkpoint after batch {places.last_batch(checkpoint)}")
    standing = [mate for mate in flow.mates(sink) if mate.kind is SinkKind.TABLE and table_offsets(flow, mate)]
    if len({tuple(table_offsets(flow, mate).items()) for mate in standing}) > 1:
        names = " and ".join(mate.name for mate in standing)
        raise BadOption(
            f"sinks {names} stand together, have no checkpoint, and their tables stand at different offsets: no one "
            f"query can go on after all of them. Take `together` from those that lag, let each go on by itself "
            f"until they have the same (`penstock pipeline run FILE --once`), and put it back"
        )
    if standing:
        (table, *_) = standing
        for mate in flow.mates(sink):
            if mate.exactly_once:
                hold(flow, mate, table, _store_of(flow, table))
        return Begin(table_start(flow, table), f"has no checkpoint and goes on at the offsets of table {table.target}")
    wish = wished_start(flow, sink)
    if wish is not None:
        return Begin(wish, f"begins at {wish}, as reset was told")
    return Begin(None, "begins where its source says")


def table_start(flow: Flow, sink: Sink) -> str:
    """The table as a source's start names it: by where it lies, or by its name in a catalog."""
    options = {name.lower(): value for name, value in lake_options(flow, sink).items()}
    if "catalog" in options and "table" in options:
        return f"table:{options['catalog']}#{options['table']}"
    return f"table:{options['path']}"


def table_offsets(flow: Flow, sink: Sink) -> dict[str, int]:
    """How far a table's rows reach, by partition; empty for one that is not there or was not filled from topics."""
    store = _store_of(flow, sink)
    if not store.exists():
        return {}
    store.refresh()
    return {f"{key.topic}-{key.partition}": offset for key, offset in sorted(store.committed().items())}


def _store_of(flow: Flow, sink: Sink) -> TableStore:
    from penstock.spark.lake.opening import open_store
    from penstock.spark.lake.options import LakeOptions

    return open_store(LakeOptions.of(lake_options(flow, sink)))


def wished_start(flow: Flow, sink: Sink) -> str | None:
    found = places.read_json(_wish_place(flow, sink))
    start = None if found is None else found.get("start")
    return start if isinstance(start, str) else None


def wish_start(flow: Flow, sink: Sink, start: str) -> None:
    places.write_json(_wish_place(flow, sink), {"start": start})


def forget_wish(flow: Flow, sink: Sink) -> None:
    places.remove_file(_wish_place(flow, sink))


def _wish_place(flow: Flow, sink: Sink) -> str:
    return f"{flow.checkpoints_here or flow.checkpoints}/_starts/{sink.name}.json"
