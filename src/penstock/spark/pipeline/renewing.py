"""A table made anew beside the one that is there: by the file as it is now, from a topic's beginning, exactly once.

The query that fills it is a stream with a checkpoint of its own, so it may be broken off and begun again, its commits
carry offsets that an audit can hold against the topic, and what it has learnt (its state) is not lost when the new
table takes the place of the old one (`swapping.py`): the sink goes on from the checkpoint of the renewal. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from penstock.spark.errors import BadOption
from penstock.spark.pipeline.flow import AVAILABLE_NOW, Flow, Sink, SinkKind, Source
from penstock.spark.pipeline.wiring import start_options

BACKFILL: Final = "backfill"
_STARTS: Final = frozenset({"startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"})


@dataclass(frozen=True, slots=True)
class Renewal:
    """The table of `sink`, made anew under the name `into`; `start` is earliest or a time."""

    sink: str
    into: str
    start: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        return cls(str(given["sink"]), str(given["into"]), str(given["start"]))


def renewed(flow: Flow, work: Renewal) -> Flow:
    """The flow that fills the new table, and nothing else. BadOption when there can be none."""
    sink = table_sink(flow, work.sink)
    if work.into == sink.target:
        raise BadOption(f"--into {work.into} is the table that sink {sink.name} fills already: name another one")
    if flow.place_of(work.into) in {flow.table_path(each) for each in flow.sinks if each.kind is SinkKind.TABLE}:
        raise BadOption(f"--into {work.into}: another sink of {flow.name} fills that table")
    names = {source.name for source in flow.lineage(sink)[0]}
    start_options(work.start)
    made = replace(
        sink, name=name_of(sink, work.into), target=work.into, trigger=AVAILABLE_NOW, together=None, fresh_within_s=0.0
    )
    return replace(
        flow,
        name=f"{flow.name}-{BACKFILL}",
        sources=tuple(_from(source, work.start) if source.name in names else source for source in flow.sources),
        sinks=(made,),
        admin=None,
    )


def table_sink(flow: Flow, name: str) -> Sink:
    """The sink, if its table can be made anew."""
    sink = flow.sink(name)
    assert sink is not None, "whoever asks has looked"
    if sink.kind is not SinkKind.TABLE or sink.many is not None:
        what = "many tables" if sink.kind is SinkKind.TABLE else f"a {sink.kind}"
        raise BadOption(f"sink {name} fills {what}: only one table can be made anew and take the place of another")
    return sink


def name_of(sink: Sink, into: str) -> str:
    """Of the sink that fills the new table, and so of its checkpoint."""
    plain = "".join(char if char.isalnum() and char.isascii() else "-" for char in into)
    return f"{sink.name}-into-{plain.strip('-')}"


def _from(source: Source, start: str) -> Source:
    """From there, whatever its options say. Letters in a topic were sent by the query that met them first."""
    letters = source.dead_letters
    kept = {name: value for name, value in source.options.items() if name.lower() not in _STARTS}
    return replace(
        source,
        start=start,
        options=kept,
        dead_letters="drop" if letters is not None and ":" in letters else letters,
    )
