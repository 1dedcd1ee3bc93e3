"""Equal partitions are one object, and what no image has any more is forgotten."""

from __future__ import annotations

import pytest

from penstock.metadata import entities
from penstock.metadata.entities import PartitionImage, shared


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "_shared", {})
    monkeypatch.setattr(entities, "_sweep_at", entities._SHARED_MIN)


def partition(epoch: int) -> PartitionImage:
    return PartitionImage((1, 2, 3), (), (1, 2), leader=1, partition_epoch=epoch)


def test_equal_partitions_are_one_object() -> None:
    first = shared(partition(5))
    assert shared(partition(5)) is first
    assert shared(partition(6)) is not first


def test_a_year_of_changes_leaves_nothing_behind() -> None:
    for epoch in range(10_000):
        shared(partition(epoch))
    assert len(entities._shared) <= entities._SHARED_MIN


def test_what_images_have_stays_shared_however_much_comes_and_goes() -> None:
    held = [shared(partition(epoch)) for epoch in range(1_000)]
    for epoch in range(1_000, 20_000):
        shared(partition(epoch))
    assert all(shared(partition(epoch)) is held[epoch] for epoch in range(1_000))
    assert len(entities._shared) <= 2 * len(held)
