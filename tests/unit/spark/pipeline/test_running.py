"""One sink's failure is its own: it is tried again from its checkpoint, then given up, and the others never notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.errors import GO_ON, CommitRefused, DataLost, TopicLost
from penstock.spark.pipeline import home, running
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner
from tests.unit.spark.pipeline.files import changed, flow_of

QUICK = Patience(first_s=1.0, most_s=10.0, tries=3, forgive_s=1000)


class Told:
    def __init__(self, batch: int, rows: int, run: str, late: int = 0) -> None:
        self.batchId = batch
        told = {"id": "q", "runId": run, "batchId": batch, "numInputRows": rows}
        states = [{"numRowsTotal": 1, "numRowsDroppedByWatermark": late}]
        self.json = json.dumps({**told, "timestamp": "2026-11-01T00:00:00.000Z", "stateOperators": states})


class Query:
    """What Spark gives for a started query, in the hands of a test."""

    def __init__(self, run: str) -> None:
        self.run, self.isActive = run, True
        self.told: list[Told] = []
        self.failure: Exception | None = None
        self.busy = False

    @property
    def lastProgress(self) -> Told | None:
        return self.told[-1] if self.told else None

    @property
    def recentProgress(self) -> list[Told]:
        return self.told

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self.busy, "isDataAvailable": self.busy}

    def exception(self) -> Exception | None:
        return self.failure

    def stop(self) -> None:
        self.isActive = False

    def fail(self, failure: Exception) -> None:
        self.failure, self.isActive = failure, False

    def batch(self, number: int, rows: int = 10, late: int = 0) -> None:
        self.told.append(Told(number, rows, self.run, late))


class World:
    """A runner of two sinks, its clock and all queries that were started."""

    def __init__(self, flow: Flow) -> None:
        self.now_s = 0.0
        self.started: list[tuple[str, Query]] = []
        self.refuse: dict[str, Exception] = {}
        self.runner = Runner(flow, None, patience=QUICK, clock=lambda: self.now_s, begin=self._begin)  # type: ignore[arg-type]

    def _begin(self, _: object, __: Flow, sink: Sink) -> Any:
        if sink.name in self.refuse:
            raise self.refuse[sink.name]
        query = Query(f"{sink.name}-{len(self.started)}")
        self.started.append((sink.name, query))
        return query

    def query(self, name: str) -> Query:
        return [query for started, query in self.started if started == name][-1]

    def states(self) -> dict[str, str]:
        return {run.sink.name: run.state for run in self.runner.sinks}

    def look(self, seconds: float = 0.0) -> dict[str, str]:
        self.now_s += seconds
        self.runner.look()
        return self.states()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(running, "ship", lambda *_: None)
    return World(flow_of(path=tmp_path / "p.toml").only(("lake", "totals")))


def test_a_sink_that_fails_or_ends_leaves_nothing_open(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []
    monkeypatch.setattr(running, "release_topic", lambda _spark, _flow, sink: released.append(sink.name))
    world.runner.start()
    world.query("totals").fail(RuntimeError("disk full"))
    world.look()
    assert released == ["totals"]
    world.look(1.1)
    world.runner.stop(within_s=0)
    assert released == ["totals", "lake", "totals"]


def test_a_failed_sink_is_started_again_after_a_wait_and_the_other_goes_on(world: World) -> None:
    world.runner.start()
    other = world.query("totals")
    world.query("lake").fail(RuntimeError("disk full"))
    assert world.look() == {"lake": "retrying", "totals": "running"}
    assert world.runner.progress().sinks[0].error == "RuntimeError: disk full"
    assert world.look(0.5) == {"lake": "retrying", "totals": "running"}
    assert world.look(0.6) == {"lake": "running", "totals": "running"}
    assert world.query("totals") is other
    world.query("lake").batch(0)
    world.look()
    assert (world.runner.sinks[0].error, world.runner.sinks[0].tries.failed) == ("", 0)


def test_after_some_tries_it_is_given_up_and_the_other_goes_on(world: World) -> None:
    world.runner.start()
    for _ in range(3):
        world.query("lake").fail(RuntimeError("disk full"))
        world.look(20)
        world.look(20)
    assert world.states() == {"lake": "failed", "totals": "running"}
    assert not world.runner.done
    assert world.runner.state == home.RUNNING


def test_what_cannot_heal_is_not_tried_again(world: World) -> None:
    world.runner.start()
    world.query("lake").fail(CommitRefused("the table stands elsewhere"))
    assert world.look() == {"lake": "failed", "totals": "running"}


def test_a_checkpoint_that_does_not_fit_is_given_up_at_once_with_the_cure(world: World) -> None:
    world.runner.start()
    text = "There are [1] sources in the checkpoint offsets and now there are [2] sources requested by the query."
    world.query("lake").fail(RuntimeError(f"[STREAM_FAILED] Query [id = x] terminated with exception: {text}"))
    assert world.look() == {"lake": "failed", "totals": "running"}
    error = world.runner.progress().sinks[0].error
    assert error.startswith(
        "the steps of sink lake are not those that its checkpoint was made by (There are [1] sources"
    )
    assert "`penstock pipeline backfill p.toml --sink lake --into orders_new`" in error
    assert "`penstock pipeline reset orders --sink lake`" in error


ANEW = "topic 'orders' was deleted and created anew"
GO_ON_IN_FILE = "`failOnDataLoss = false` among the options of [sources.orders] goes on with what is there"


def test_a_topic_made_anew_names_the_command_and_the_place_in_the_file(world: World) -> None:
    world.runner.start()
    for name in ("lake", "totals"):
        world.query(name).fail(TopicLost(f"{ANEW}. {GO_ON}"))
    assert world.look() == {"lake": "failed", "totals": "failed"}
    assert [sink.error for sink in world.runner.progress().sinks] == [
        f"{ANEW}. `penstock pipeline reset orders --sink {name}` forgets its checkpoint, and says first what that "
        f"means; {GO_ON_IN_FILE}"
        for name in ("lake", "totals")
    ]


def test_a_table_that_was_overtaken_by_retention_is_not_told_to_reset(world: World) -> None:
    world.runner.start()
    for name in ("lake", "totals"):
        world.query(name).fail(DataLost(f"3 offsets are gone. {GO_ON}"))
    world.look()
    lake, totals = [sink.error for sink in world.runner.progress().sinks]
    assert lake == f"3 offsets are gone. {GO_ON_IN_FILE}"
    assert totals.startswith("3 offsets are gone. `penstock pipeline reset orders --sink totals`")


def test_a_sink_that_cannot_be_started_keeps_nobody_from_starting(world: World) -> None:
    world.refuse["lake"] = RuntimeError("no disk")
    world.runner.start()
    assert world.states() == {"lake": "retrying", "totals": "running"}
    del world.refuse["lake"]
    assert world.look(2) == {"lake": "running", "totals": "running"}


def test_without_its_jvm_a_runner_does_not_pretend(world: World) -> None:
    world.refuse["lake"] = ConnectionRefusedError("no JVM")
    with pytest.raises(ConnectionRefusedError):
        world.runner.start()


def test_rows_of_batches_between_two_looks_are_counted(world: World) -> None:
    world.runner.start()
    query = world.query("lake")
    query.batch(0, 5)
    world.look()
    for number in (1, 2, 3):
        query.batch(number, 10)
    world.look()
    world.look()
    assert (world.runner.sinks[0].rows, world.runner.sinks[0].batches) == (35, 4)


def test_rows_of_batches_before_the_first_look_are_counted(world: World) -> None:
    world.runner.start()
    for number in (0, 1, 2):
        world.query("lake").batch(number, 10)
    world.look()
    assert (world.runner.sinks[0].rows, world.runner.sinks[0].batches) == (30, 3)


def test_rows_that_came_too_late_are_counted_over_all_batches_and_restarts(world: World) -> None:
    world.runner.start()
    query = world.query("lake")
    query.batch(0, late=2)
    world.look()
    query.batch(1, late=3)
    query.batch(2)
    world.look()
    world.look()
    assert world.runner.progress().sinks[0].late_rows == 5
    query.fail(RuntimeError("disk full"))
    world.look()
    world.look(20)
    world.query("lake").batch(3, late=1)
    world.look()
    assert world.runner.progress().sinks[0].late_rows == 6


def test_available_now_ends_as_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ship", lambda *_: None)
    world = World(flow_of(path=tmp_path / "p.toml").only(("lake", "totals")).once())
    world.runner.start()
    world.query("lake").stop()
    world.query("totals").stop()
    assert world.look() == {"lake": "finished", "totals": "finished"}
    assert (world.runner.done, world.runner.state) == (True, home.FINISHED)


def test_stopping_waits_for_the_batch_that_runs_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ship", lambda *_: None)
    text = changed(('key = "country"', 'key = "country"\ntrigger = "5 seconds"'))
    world = World(flow_of(text, tmp_path / "p.toml").only(("lake", "totals")))
    world.runner.start()
    looks = 0
    quick, slow = world.query("lake"), world.query("totals")
    quick.busy = slow.busy = True

    def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        world.now_s += 1.0
        if looks == 3:
            quick.busy = False
        assert quick.isActive == (looks <= 3)

    monkeypatch.setattr(running.time, "sleep", sleep)
    world.runner.stop(within_s=10)
    assert world.states() == {"lake": "stopped", "totals": "stopped"}
    assert 10 <= world.now_s <= 12


def test_what_waits_for_its_next_try_is_stopped_too(world: World) -> None:
    world.refuse["lake"] = RuntimeError("no disk")
    world.runner.start()
    world.runner.stop(within_s=1)
    assert world.states() == {"lake": "stopped", "totals": "stopped"}
