"""What is kept of a pipeline is true: a recycled process id is not taken for it, and one name runs once."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.processes import birth_of
from penstock.spark.errors import SparkRoomError
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import AlreadyRunning, Home, Job, Outcome, Progress, SinkProgress, State

HERE = State(
    name="orders",
    state=home.RUNNING,
    pid=os.getpid(),
    born=birth_of(os.getpid()),
    host="h",
    file="/p.toml",
    digest="d",
    master="local",
    bootstrap="b:1",
    warehouse="/lake",
    started_ms=1,
)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home("orders", tmp_path)


def test_a_run_whose_process_lives_is_as_it_says(place: Home) -> None:
    place.write_state(HERE)
    assert place.state() == HERE


def test_another_process_with_the_same_id_is_not_taken_for_it(place: Home) -> None:
    place.write_state(replace(HERE, born="another-boot/1"))
    found = place.state()
    assert found is not None
    assert (found.state, found.code) == (home.DIED, 1)


def test_one_name_runs_once(place: Home) -> None:
    with place.locked(), pytest.raises(AlreadyRunning, match="penstock pipeline stop orders"), place.locked():
        pass
    with place.locked():
        pass


def test_everything_comes_back_as_it_was_written(place: Home) -> None:
    progress = Progress(5, home.RUNNING, (SinkProgress("s", "table", "t", "running", "q", rows=3),))
    outcome = Outcome(3, "words", False, home.FAILED)
    place.write_progress(progress)
    place.write_outcome(outcome)
    assert (place.progress(), place.outcome()) == (progress, outcome)
    place.forget_run()
    assert (place.progress(), place.outcome()) == (None, None)


def test_a_job_may_hold_passwords_and_goes_through_a_pipe(place: Home) -> None:
    job = Job("/p.toml", "b:1", "local", {"sasl.password": "x1y2"}, sinks=("a",), backfill={"start": "earliest"})
    assert "x1y2" not in repr(job)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as inner, os.fdopen(writing, "wb") as outer:
        job.put_into(outer)
        assert Job.out_of(inner) == job


def test_a_driver_that_nobody_told_anything_says_so() -> None:
    with pytest.raises(SparkRoomError, match="penstock pipeline run"):
        Job.out_of(io.BytesIO())


def test_passwords_that_an_earlier_release_left_are_taken_away(place: Home) -> None:
    place.directory.mkdir()
    (place.directory / "job.json").write_text('{"kafka": {"sasl.password": "x1y2"}}')
    place.forget_run()
    assert not (place.directory / "job.json").exists()


def test_what_a_later_version_wrote_is_read_and_what_is_broken_is_nothing(place: Home) -> None:
    place.directory.mkdir()
    (place.directory / "progress.json").write_text('{"at_ms": 1, "state": "running", "new": 2, "sinks": []}')
    assert place.progress() == Progress(1, home.RUNNING)
    (place.directory / "progress.json").write_text('{"at_ms"')
    assert place.progress() is None


def test_homes_are_below_the_state_directory_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert home.homes() == []
    Home("orders").write_state(HERE)
    (found,) = home.homes()
    assert found.directory == tmp_path / "penstock" / "pipelines" / "orders"
