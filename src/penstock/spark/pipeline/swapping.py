"""A renewed table takes the place of the one before it, and its sink goes on from the checkpoint of the renewal.

Four moves, in an order in which a crash between two of them leaves something that `swap` goes on with:

    the sink's checkpoint goes          without one it goes on at the offsets of whichever table is there
    the old table gets another name     now there is none: a second `swap` finds the new one and both names
    the new table gets the old name     its offsets are in it; the checkpoint beside it only has its state
    the renewal's checkpoint moves in   and the sink goes on where the renewal ended
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from penstock.spark.errors import BadOption
from penstock.spark.lake.places import is_local
from penstock.spark.pipeline import places
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.renewing import name_of, table_sink
from penstock.spark.pipeline.starts import forget_wish, table_offsets

KEPT: Final = "_before"
_LOG: Final = "_delta_log"


@dataclass(frozen=True, slots=True)
class Swap:
    """What is to be moved; `words` say what it means. A swap that was broken off has less left to do."""

    sink: str
    table: str
    new: str
    kept: str
    checkpoint: str
    renewed_checkpoint: str
    words: str


def plan_swap(flow: Flow, name: str, new: str, kept: str = "") -> Swap:
    """BadOption when it cannot be done, with what to do instead. Nothing is moved."""
    sink = table_sink(flow, name)
    _check_movable(flow, sink)
    kept = kept or f"{sink.target}{KEPT}"
    place, there, aside = (Path(flow.place_of(each)) for each in (sink.target, new, kept))
    renewal = f"{flow.checkpoints}/{name_of(sink, new)}"
    found = Swap(name, str(place), str(there), str(aside), flow.checkpoint(sink), renewal, "")
    if _is_table(there):
        if _is_table(place) and aside.exists():
            raise BadOption(f"{aside} is there already, from an earlier swap: remove it, or say --keep NAME")
        return _with_words(flow, sink, new, found)
    if _is_table(place) and _is_table(aside) and places.is_begun(renewal):
        return _with_words(flow, sink, "", found)  # broken off before its last move
    raise BadOption(
        f"there is no table {new} in {flow.warehouse}: `penstock pipeline backfill {flow.path.name} --sink {name} "
        f"--into {new}` makes it"
    )


def carry_out(swap: Swap) -> None:
    """The pipeline must not be running, nor its backfill."""
    if _is_table(Path(swap.new)):
        places.remove(swap.checkpoint)
        if _is_table(Path(swap.table)):
            os.rename(swap.table, swap.kept)
        os.rename(swap.new, swap.table)
    if places.is_begun(swap.renewed_checkpoint):
        places.remove(swap.checkpoint)
        os.rename(swap.renewed_checkpoint, swap.checkpoint)


def forget(flow: Flow, swap: Swap) -> None:
    """What `reset --from` wished for is over: the new table knows its offsets."""
    sink = flow.sink(swap.sink)
    assert sink is not None, "a plan names a sink of its flow"
    forget_wish(flow, sink)


def _check_movable(flow: Flow, sink: Sink) -> None:
    if sink.table_format != "delta" or not is_local(flow.table_path(sink)) or not is_local(flow.checkpoints):
        raise BadOption(
            f"sink {sink.name}: only Delta tables in a directory can change their names. Say table = "
            '"THE NEW ONE" in the file instead, and `penstock pipeline reset` its sink: it goes on at the offsets of '
            "that table"
        )
    if sink.together is not None:
        raise BadOption(f"sink {sink.name} shares a query with others: take `together` from it first")


def _with_words(flow: Flow, sink: Sink, new: str, swap: Swap) -> Swap:
    behind = _behind(flow, sink, new) if new else 0
    waits = f"; the sink takes {behind:,} records next that the old one has already" if behind else ""
    old = f"; the old one is {Path(swap.kept).name} from then on" if _is_table(Path(swap.table)) else ""
    return replace(swap, words=f"{Path(swap.new).name} becomes {sink.target}{old}{waits}")


def _behind(flow: Flow, sink: Sink, new: str) -> int:
    old, made = table_offsets(flow, sink), table_offsets(flow, replace(sink, target=new))
    return sum(max(0, offset - made.get(place, 0)) for place, offset in old.items())


def _is_table(place: Path) -> bool:
    return (place / _LOG).is_dir()
