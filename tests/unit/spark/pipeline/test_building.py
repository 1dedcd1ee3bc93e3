"""What needs no Spark of building: where executors find us, what ranges a backfill reads."""

from __future__ import annotations

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.pipeline.backfilling import Backfill, aimed, range_options
from penstock.spark.pipeline.session import cluster_settings
from penstock.spark.sessions import package_root
from tests.unit.spark.pipeline.files import flow_of


def test_executors_elsewhere_find_a_source_tree_by_its_path_and_an_installation_by_itself() -> None:
    assert cluster_settings("local[2]") == {}
    assert cluster_settings("spark://m:7077", site_packages=[]) == {"spark.executorEnv.PYTHONPATH": package_root()}
    assert cluster_settings("spark://m:7077", site_packages=[package_root()]) == {}


def test_a_backfill_reads_a_range_and_nothing_that_only_streams_know() -> None:
    flow = flow_of()
    source, sink = flow.sources[0], flow.sinks[0]
    options = range_options(flow, source, sink, Backfill("earliest", "2026-11-01T00:00:00Z"))
    assert (options["startingOffsets"], options["endingTimestamp"]) == ("earliest", "1793491200000")
    assert not {"maxOffsetsPerTrigger", "queryName"} & set(options)
    assert range_options(flow, source, sink, Backfill("earliest"))["endingOffsets"] == "latest"
    assert range_options(flow, source, flow.sinks[1], Backfill("earliest"))["deadLetters"] == "drop"


def test_a_backfill_goes_into_one_other_place() -> None:
    flow = flow_of()
    assert aimed(flow.only(("lake",)), Backfill("earliest", into="again")).sinks[0].target == "again"
    with pytest.raises(BadOption, match="--sink"):
        aimed(flow, Backfill("earliest", into="again"))
