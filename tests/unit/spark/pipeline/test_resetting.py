"""Before a checkpoint goes, it is said what will happen; where to begin is left for the next run."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.pipeline import places, resetting, starts
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.resetting import carry_out, plan_reset
from penstock.spark.pipeline.starts import begin_of
from tests.unit.spark.pipeline.files import flow_of


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    """Sink `raw` is a table with offsets; all sinks have done two batches."""
    made = flow_of(path=tmp_path / "p.toml")
    for module in (resetting, starts):
        monkeypatch.setattr(module, "table_offsets", lambda _, sink: {"orders-0": 120} if sink.name == "raw" else {})
    for sink in made.sinks:
        for name in ("offsets", "commits"):
            folder = Path(made.checkpoint(sink)) / name
            folder.mkdir(parents=True)
            for batch in ("0", "1"):
                (folder / batch).touch()
    return made


def test_the_plan_says_what_each_sink_will_do(flow: Flow) -> None:
    assert [(each.sink, each.batch, each.words) for each in plan_reset(flow)] == [
        ("lake", 1, "begins anew at earliest: table orders has no offsets and is filled"),
        ("raw", 1, "goes on at the offsets of table raw: nothing is doubled or skipped"),
        ("totals", 1, "begins anew at earliest: records are sent to totals again"),
    ]


def test_a_table_with_offsets_cannot_be_told_where_to_begin(flow: Flow) -> None:
    with pytest.raises(BadOption, match="table raw has its own offsets"):
        plan_reset(flow, ("raw",), "latest")


def test_a_sink_that_is_not_there_has_a_nearest_name(flow: Flow) -> None:
    with pytest.raises(BadOption, match="did you mean 'totals'"):
        plan_reset(flow, ("total",))


def test_where_a_sink_begins_follows_its_checkpoint_then_its_table_then_the_wish(flow: Flow) -> None:
    lake, raw, totals = flow.sinks
    assert begin_of(flow, raw).start is None
    assert begin_of(flow, raw).why == "goes on from its checkpoint after batch 1"
    carry_out(flow, plan_reset(flow, ("lake", "raw")))
    carry_out(flow, plan_reset(flow, ("totals",), "latest"))
    assert not Path(flow.checkpoint(raw)).exists()
    assert begin_of(flow, raw).start == f"table:{flow.warehouse}/raw"
    assert begin_of(flow, lake).start is None
    assert begin_of(flow, totals).start == "latest"
    starts.forget_wish(flow, totals)
    assert begin_of(flow, totals).start is None


def test_checkpoints_elsewhere_are_reached_by_their_uri(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/check point"
    places.write_json(f"{uri}/x.json", {"a": 1})
    assert places.read_json(f"{uri}/x.json") == {"a": 1}
    assert not places.is_begun(uri)
    (tmp_path / "check point" / "offsets").mkdir()
    (tmp_path / "check point" / "offsets" / "0").touch()
    assert places.is_begun(uri)
    places.remove(uri)
    assert not (tmp_path / "check point").exists()
