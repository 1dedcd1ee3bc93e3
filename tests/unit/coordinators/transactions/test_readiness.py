"""While a broker of a release without transactions is registered nothing begins, grows or ends."""

from __future__ import annotations

import pytest

from penstock.metadata.features import TRANSACTION_VERSION
from penstock.metadata.image import ClusterImage
from penstock.metadata.readiness import waits_for, why
from penstock.model.errors import COORDINATOR_NOT_AVAILABLE, NONE
from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord
from tests.unit.coordinators.transactions.scene import P0, TIMEOUT_MS, Scene

PID = 1_000
CLOSED = COORDINATOR_NOT_AVAILABLE.code
INTERVAL_MS = 10_000
Feature = RegisterBrokerRecord.BrokerFeature
KNOWS = [Feature(name=TRANSACTION_VERSION, min_supported_version=0, max_supported_version=2)]
KNOWS_NOTHING_OF_IT = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)]


def register(image: ClusterImage, broker_id: int, features: list[Feature], *, fenced: bool = False) -> None:
    record = RegisterBrokerRecord(
        broker_id=broker_id, incarnation_id=Uuid(bytes(16)), broker_epoch=1, features=features, fenced=fenced
    )
    image.apply(record, Offset(image.offset + 1), Epoch(1))


def scene_with(features: list[Feature]) -> Scene:
    """A producer with an open transaction, and then a second broker."""
    scene = Scene(0)
    scene.at("Ongoing", 4, version=0)
    second(scene, features)
    return scene


def second(scene: Scene, features: list[Feature]) -> None:
    register(scene.image, 1, KNOWS)
    register(scene.image, 2, features)
    scene.shard.see(scene.image)


@pytest.mark.parametrize("fenced", [False, True])
def test_whoever_is_registered_counts_dead_or_alive(fenced: bool) -> None:
    image = ClusterImage()
    assert waits_for(image) is None
    register(image, 1, KNOWS)
    assert waits_for(image) is None
    register(image, 3, KNOWS_NOTHING_OF_IT, fenced=fenced)
    register(image, 2, KNOWS_NOTHING_OF_IT, fenced=fenced)
    assert waits_for(image) == 2
    assert "broker 2" in why(NodeId(2))
    register(image, 2, KNOWS)
    register(image, 3, KNOWS)
    assert waits_for(image) is None


def test_nothing_begins_grows_or_ends() -> None:
    scene = scene_with(KNOWS_NOTHING_OF_IT)
    before = scene.story()
    assert scene.init() == (CLOSED, -1, -1)
    assert scene.init(name="another") == (CLOSED, -1, -1)
    assert scene.add(PID, 4, ("out", 7), version=0) == CLOSED
    assert scene.add_offsets(PID, 4) == CLOSED
    for commit in (True, False):
        assert scene.end(PID, 4, commit=commit, version=4) == (CLOSED, -1, -1)
    assert scene.story() == before


def test_what_was_added_is_still_verified() -> None:
    """Its leader may have got its first batch only now."""
    assert scene_with(KNOWS_NOTHING_OF_IT).verify(PID, 4) == {P0: NONE}


def test_time_goes_on_and_outcomes_are_still_carried_out() -> None:
    scene = scene_with(KNOWS_NOTHING_OF_IT)
    scene.wait(TIMEOUT_MS + INTERVAL_MS)
    assert scene.stands() == ("PrepareAbort", PID, 5)
    scene.mark_all()
    assert scene.stands() == ("CompleteAbort", PID, 5)


def test_with_its_upgrade_everything_goes_on() -> None:
    scene = scene_with(KNOWS_NOTHING_OF_IT)
    assert scene.end(PID, 4, commit=True, version=4)[0] == CLOSED
    second(scene, KNOWS)
    assert scene.end(PID, 4, commit=True, version=4)[0] == 0
    scene.mark_all()
    assert scene.stands() == ("CompleteCommit", PID, 4)


def test_a_shard_that_is_loaded_meanwhile_knows_it_too() -> None:
    scene = scene_with(KNOWS_NOTHING_OF_IT)
    scene.fail_over()
    assert scene.end(PID, 4, commit=True, version=4)[0] == CLOSED


def test_brokers_that_come_and_go_are_seen_as_they_do() -> None:
    scene = Scene(0)
    for features, told in ((KNOWS_NOTHING_OF_IT, CLOSED), (KNOWS, 0)):
        register(scene.image, 2, features)
        assert not list(scene.shard.image_changed(scene.image, scene.image.take_delta(), scene.now))
        assert scene.init()[0] == told
