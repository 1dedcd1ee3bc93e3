"""Checkpoints in an object store: where Spark keeps them, what cannot be, and what sinks are told."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from penstock.spark.checkpoints.keeping import keep
from penstock.spark.checkpoints.mirror import CheckpointTaken
from penstock.spark.checkpoints.objects import Objects
from penstock.spark.errors import BadOption
from penstock.spark.lake.options import LakeOptions
from penstock.spark.naming import MIRROR_OPTION
from penstock.spark.pipeline.mirroring import begun, check_master, forgotten, kept_first
from penstock.spark.pipeline.resetting import carry_out, plan_reset
from penstock.spark.pipeline.wiring import lake_options, plain_options, topic_options
from tests.unit.spark.pipeline.files import changed, complaints, flow_of

REMOTE = ('warehouse = "lake"', 'warehouse = "s3://bucket/lake"')
LOCAL = ('master = "local[2,4]"', 'master = "spark://host:7077"')


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "penstock" / "pipelines"


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> defaultdict[str, MemoryStore]:
    """By place, instead of whatever is there."""
    made: defaultdict[str, MemoryStore] = defaultdict(MemoryStore)
    monkeypatch.setattr(Objects, "at", classmethod(lambda cls, place, storage: cls(made[place], place)))
    return made


def test_spark_keeps_them_here_and_copies_are_there(state: Path) -> None:
    flow = flow_of(changed(REMOTE))
    sink = flow.sinks[0]
    assert flow.checkpoint(sink) == f"{state}/orders/checkpoints/lake"
    assert flow.mirror(sink) == "s3://bucket/lake/_checkpoints/orders/lake"
    beside = flow_of(changed((REMOTE[0], f'{REMOTE[1]}\ncheckpoints = "/disk"')))
    assert (beside.checkpoint(sink), beside.mirror(sink)) == ("/disk/lake", "")
    assert flow_of().mirror(sink) == ""


def test_spark_opens_stores_itself_when_it_has_the_jars() -> None:
    flow = flow_of(
        changed(REMOTE, LOCAL, ("settings = {", 'settings = { "spark.jars.packages" = "org.x:hadoop-aws:3",'))
    )
    assert (flow.checkpoint(flow.sinks[0]), flow.mirror(flow.sinks[0])) == (
        "s3://bucket/lake/_checkpoints/orders/lake",
        "",
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ([REMOTE, LOCAL], "3:1: checkpoints at s3://bucket/lake/_checkpoints/orders: executors of a cluster keep"),
        ([("[spark]", 'checkpoints = "gs://b/c"\n[spark]'), LOCAL], "4:1: checkpoints at gs://b/c: executors of"),
        ([REMOTE, ("[spark]", '[storage]\nrole = "arn:x"\n[spark]')], "5:1: storage.role is for tables alone"),
        ([REMOTE, ('topic = "totals"\nmode = "update"\nkey = "country"', 'parquet = "x"')], "34:1: Spark commits"),
    ],
)  # fmt: skip
def test_what_copies_ask_of_a_flow(changes: list[tuple[str, str]], complaint: str) -> None:
    told = complaints(changed(*changes))
    assert any(each.startswith(complaint) for each in told), told


def test_the_master_of_the_command_line_counts_too() -> None:
    flow = flow_of(changed(REMOTE))
    check_master(flow)
    check_master(flow_of().on(master="spark://host:7077"))
    with pytest.raises(BadOption, match="give a directory that all hosts see"):
        check_master(flow.on(master="spark://host:7077"))


def test_a_sink_is_told_where_copies_go_and_keeps_them(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S", "unseen")
    flow = flow_of(changed((REMOTE[0], f'{REMOTE[1]}\n[storage]\naccess_key = "k"\nsecret_key = "env:S"')))
    sink = begun(flow, flow.sinks[0])
    option = sink.options[MIRROR_OPTION]
    assert json.loads(option)["storage"] == {"access_key": "k", "secret_key": "env:S"}
    assert LakeOptions.of(lake_options(flow, sink)).mirror == option
    topic = begun(flow, flow.sinks[2])
    assert topic_options(flow, topic)[MIRROR_OPTION] == topic.options[MIRROR_OPTION]
    assert MIRROR_OPTION not in plain_options(topic)
    first = Path(flow.checkpoint(sink)) / "offsets" / "0"
    first.parent.mkdir(parents=True)
    first.write_text("v1")
    keep(flow.checkpoint(sink), option)
    begun(flow, flow.sinks[0])
    with pytest.raises(CheckpointTaken, match="begun by another process"):
        keep(flow.checkpoint(sink), option)
    assert begun(flow_of(), sink) is sink


def test_a_function_of_batches_is_called_when_the_checkpoint_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[Any] = []
    monkeypatch.setattr("penstock.spark.pipeline.mirroring.keep", lambda *given: order.append(given))
    flow = flow_of(changed(REMOTE))
    sink = replace(flow.sinks[2], options={MIRROR_OPTION: "told"})

    def write(rows: Any, batch: int) -> None:
        order.append((rows, batch))

    kept_first(flow, sink, write)("rows", 7)  # type: ignore[arg-type]
    assert order == [(flow.checkpoint(sink), "told"), ("rows", 7)]
    assert kept_first(flow, flow.sinks[2], write) is write


def test_a_reset_forgets_the_copies_too(stores: dict[str, MemoryStore]) -> None:
    flow = flow_of(changed(REMOTE))
    sink = begun(flow, flow.sinks[2])
    written = Path(flow.checkpoint(sink)) / "offsets" / "0"
    written.parent.mkdir(parents=True)
    written.write_text("v1")
    keep(flow.checkpoint(sink), sink.options[MIRROR_OPTION])
    assert Objects(stores[flow.mirror(sink)], "").names("")
    carry_out(flow, plan_reset(flow, ["totals"]))
    assert Objects(stores[flow.mirror(sink)], "").names("") == []
    assert not Path(flow.checkpoint(sink)).exists()
    forgotten(flow, sink)


@pytest.mark.parametrize("option", ["x", "{}", "[]", '{"place": "s3://b", "holder": "h"}'])
def test_the_option_is_not_for_people(option: str) -> None:
    with pytest.raises(BadOption, match="is not for people"):
        keep("/nowhere", option)
