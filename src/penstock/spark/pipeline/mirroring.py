"""Checkpoints of a flow whose place is an object store: Spark keeps them on this machine, the store has copies."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from penstock.declared.fields import Notes
from penstock.spark.checkpoints.keeping import begin, forget, is_mirrored, keep
from penstock.spark.checkpoints.objects import NEEDS_OBSTORE
from penstock.spark.errors import BadOption
from penstock.spark.naming import MIRROR_OPTION
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind, SparkPart
from penstock.spark.pipeline.home import pipelines_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_JARS: Final = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
"""With one of Hadoop's connectors among them Spark opens object stores by itself."""

_ON_A_CLUSTER: Final = (
    "executors of a cluster keep the state of steps in the checkpoint itself, and Spark without further jars opens no "
    'object store: give a directory that all hosts see, checkpoints = "/shared/checkpoints", or run on "local[*]"'
)


def checkpoints_here(name: str, checkpoints: str, spark: SparkPart) -> str:
    """Where Spark keeps the checkpoints of a flow; "" where it keeps them at `checkpoints` itself."""
    if not is_mirrored(checkpoints) or any(spark.settings.get(jars) for jars in _JARS):
        return ""
    return str(pipelines_directory() / name / "checkpoints")


def check_checkpoints(flow: Flow, notes: Notes) -> None:
    """What copies of checkpoints ask of a flow."""
    if not flow.checkpoints_here:
        return
    said = (
        ("checkpoints",) if notes.positions.of(("checkpoints",)).line > notes.positions.of(()).line else ("warehouse",)
    )
    if not flow.spark.master.startswith("local"):
        notes.wrong(said, f"checkpoints at {flow.checkpoints}: {_ON_A_CLUSTER}")
    if importlib.util.find_spec("obstore") is None:
        notes.wrong(said, NEEDS_OBSTORE)
    if "role" in flow.storage:
        notes.wrong(
            ("storage", "role"),
            "storage.role is for tables alone, and checkpoints are in the same store: run the driver under that role, "
            "or give checkpoints a directory",
        )
    for sink in flow.sinks:
        if sink.kind is SinkKind.PARQUET:
            words = "Spark commits parquet before a copy of its checkpoint can be made: write a table, or give"
            notes.wrong(("sinks", sink.name, "parquet"), f"{words} checkpoints a directory")
        if sink.together is not None:
            words = "copies are made of the checkpoint of one sink: leave together out, or give checkpoints a directory"
            notes.wrong(("sinks", sink.name, "together"), words)


def check_master(flow: Flow) -> None:
    """The master may come from the command line, over what the file says."""
    if flow.checkpoints_here and not flow.spark.master.startswith("local"):
        raise BadOption(f"checkpoints at {flow.checkpoints}: {_ON_A_CLUSTER}")


def begun(flow: Flow, sink: Sink) -> Sink:
    """The sink with the newest checkpoint there is on this disk, and with what it takes to keep copies of it."""
    place = flow.mirror(sink)
    if not place:
        return sink
    option = begin(flow.checkpoint(sink), place, flow.storage)
    return replace(sink, options={**sink.options, MIRROR_OPTION: option})


def forgotten(flow: Flow, sink: Sink) -> None:
    forget(flow.checkpoint(sink), flow.mirror(sink), flow.storage)


def kept_first(flow: Flow, sink: Sink, write: Callable[..., Any]) -> Callable[[DataFrame, int], Any]:
    """The function of a batch; the checkpoint is kept before it is called."""
    checkpoint, option = flow.checkpoint(sink), sink.options.get(MIRROR_OPTION, "")

    def written(rows: DataFrame, batch: int) -> Any:
        keep(checkpoint, option)
        return write(rows, batch)

    return written if option else write
