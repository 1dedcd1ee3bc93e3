"""Partitions join: the order of checks, what is written, and the home of a group's offsets."""

from __future__ import annotations

import pytest

from penstock.coordinators.home import home_partition
from penstock.model.errors import NONE, TRANSACTION_ABORTABLE
from penstock.model.ids import OFFSETS_TOPIC
from tests.unit.coordinators.transactions.scene import ID, P0, P1, P2, Scene, image_at

PID = 1_000
OTHER = 999


@pytest.mark.parametrize(
    ("status", "pid", "epoch", "error"),
    [
        ("Empty", OTHER, 5, 49),
        ("Empty", PID, 4, 90),
        ("Empty", PID, 6, 90),
        ("Empty", PID, 5, 0),
        ("Ongoing", OTHER, 5, 49),
        ("Ongoing", PID, 4, 90),
        ("Ongoing", PID, 5, 0),
        ("PrepareCommit", OTHER, 5, 51),
        ("PrepareCommit", PID, 4, 51),
        ("PrepareCommit", PID, 5, 51),
        ("PrepareAbort", OTHER, 5, 51),
        ("PrepareAbort", PID, 5, 51),
        ("CompleteCommit", OTHER, 5, 49),
        ("CompleteCommit", PID, 4, 90),
        ("CompleteCommit", PID, 5, 0),
        ("CompleteAbort", PID, 5, 0),
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_who_may_add(status: str, pid: int, epoch: int, error: int, version: int) -> None:
    scene = Scene()
    scene.at(status, 5, version=version)
    written = len(scene.log)
    assert scene.add(pid, epoch, P1, version=version) == error
    assert scene.add_offsets(pid, epoch) == error
    assert (len(scene.log) > written) == (error == 0)
    if error == 0:
        assert scene.stands() == ("Ongoing", PID, 5)


def test_an_unknown_id_and_one_without_a_name() -> None:
    scene = Scene()
    assert scene.add(PID, 0) == 49
    assert scene.add_offsets(PID, 0) == 49
    assert scene.add(PID, 0, name="") == 42
    assert scene.add_offsets(PID, 0, name="") == 42
    assert not scene.log


def test_what_is_there_already_is_not_written_again() -> None:
    scene = Scene()
    scene.at("Empty", 5)
    scene.add(PID, 5, P0, P1)
    written = len(scene.log)
    assert scene.add(PID, 5, P1) == 0
    assert scene.add(PID, 5, P0, P1) == 0
    assert len(scene.log) == written
    assert scene.add(PID, 5, P1, P2) == 0
    assert scene.state().partitions == {P0, P1, P2}


def test_the_first_partitions_start_the_clock_and_later_ones_leave_it() -> None:
    scene = Scene()
    scene.at("Empty", 5)
    scene.wait(10)
    began = scene.wall
    scene.add(PID, 5, P0)
    scene.wait(10)
    scene.add(PID, 5, P1, version=0)
    state = scene.state()
    assert (state.started_ms, state.updated_ms, state.client_version) == (began, began + 10, 0)


def test_partitions_can_be_added_behind_others_that_are_not_committed_yet() -> None:
    scene = Scene()
    scene.at("Empty", 5)
    scene.held = True
    assert scene.add(PID, 5, P0) == 0
    assert scene.add(PID, 5, P1) == 0
    assert scene.add(PID, 5, P0) == 0
    assert scene.end(PID, 5, commit=True)[0] == 51
    scene.commit()
    assert scene.end(PID, 5, commit=True)[0] == 0


def test_but_not_behind_an_epoch_that_nobody_has_been_told() -> None:
    scene = Scene()
    scene.held = True
    scene.init()
    assert scene.add(PID, 0) == 51


def test_the_home_of_a_groups_offsets_is_added() -> None:
    scene = Scene()
    scene.at("Empty", 5)
    assert scene.add_offsets(PID, 5, "g") == 0
    assert scene.state().partitions == {(OFFSETS_TOPIC, home_partition("g", 50))}
    assert scene.state().client_version == 0


def test_it_follows_the_partitions_that_the_topic_has() -> None:
    scene = Scene()
    scene.image = image_at(2, offsets_partitions=3)
    scene.shard.see(scene.image)
    scene.at("Empty", 5)
    scene.add_offsets(PID, 5, "group-that-hashes-low")
    assert scene.state().partitions == {(OFFSETS_TOPIC, home_partition("group-that-hashes-low", 3))}


@pytest.mark.parametrize(
    ("status", "pid", "epoch", "answer"),
    [
        ("Empty", PID, 5, 120),
        ("Empty", OTHER, 5, 49),
        ("Ongoing", PID, 5, 0),
        ("Ongoing", OTHER, 5, 49),
        ("Ongoing", PID, 4, 90),
        ("Ongoing", PID, 6, 90),
        ("PrepareCommit", PID, 5, 51),
        ("PrepareCommit", PID, 4, 90),
        ("PrepareAbort", OTHER, 5, 49),
        ("PrepareAbort", PID, 5, 51),
        ("CompleteCommit", PID, 5, 120),
        ("CompleteAbort", PID, 4, 90),
    ],
)
def test_verifying_changes_nothing(status: str, pid: int, epoch: int, answer: int) -> None:
    scene = Scene()
    scene.at(status, 5)
    written = len(scene.log)
    assert scene.verify(pid, epoch)[P0].code == answer
    assert len(scene.log) == written


def test_verifying_tells_each_partition_on_its_own() -> None:
    scene = Scene()
    scene.at("Ongoing", 5)
    assert scene.verify(PID, 5, P0, P1) == {P0: NONE, P1: TRANSACTION_ABORTABLE}
    assert scene.verify(PID, 5, P0, name="nobody")[P0].code == 49
    assert scene.verify(PID, 5, P0, name="")[P0].code == 42


def test_ids_do_not_disturb_each_other() -> None:
    scene = Scene()
    scene.init()
    scene.init(name="other")
    scene.add(PID, 0)
    assert scene.stands(ID) == ("Ongoing", PID, 0)
    assert scene.stands("other") == ("Empty", PID + 1, 0)
    assert scene.add(PID + 1, 0) == 49
