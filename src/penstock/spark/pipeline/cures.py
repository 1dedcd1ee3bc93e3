"""What there is to do about a sink that failed, in the words of pipelines: sentences with the commands. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.spark.errors import GO_ON
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind
from penstock.spark.reasons import Reason


def told_with_cure(flow: Flow, sink: Sink, reason: Reason) -> str:
    """Why a sink failed, and what helps."""
    words = reason.words.removesuffix(f". {GO_ON}")
    if reason.changed:
        words = f"the steps of sink {sink.name} are not those that its checkpoint was made by ({words})"
    cures = "; ".join(_cures(flow, sink, reason))
    return f"{words}. {cures}" if cures else words


def _cures(flow: Flow, sink: Sink, reason: Reason) -> Iterator[str]:
    if reason.changed:
        yield "With the steps as they were it goes on"
        if sink.kind is SinkKind.TABLE and sink.many is None:
            where = f"{flow.path.name} --sink {sink.name}"
            new = f"{sink.target}_new"
            yield (
                f"`penstock pipeline backfill {where} --into {new}` makes its table anew by the steps of now, and "
                f"`penstock pipeline swap {where} --with {new}` puts that into place"
            )
    # A table goes on at its own offsets, also without a checkpoint, and there it meets records that are gone again.
    if reason.reset or (reason.lost and sink.kind is not SinkKind.TABLE):
        command = f"penstock pipeline reset {flow.name} --sink {sink.name}"
        yield f"`{command}` forgets its checkpoint, and says first what that means"
    if reason.lost:
        sources = " or ".join(f"[sources.{source.name}]" for source in flow.lineage(sink)[0])
        yield f"`failOnDataLoss = false` among the options of {sources} goes on with what is there"
