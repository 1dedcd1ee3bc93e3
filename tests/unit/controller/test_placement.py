"""Where new partitions go."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.controller.placement import place
from penstock.metadata.entities import BrokerImage, Endpoint
from penstock.model.errors import INVALID_REPLICATION_FACTOR, Refused
from penstock.model.ids import NodeId, Uuid


def broker(number: int, rack: str | None = None, host: str | None = None, *, fenced: bool = False) -> BrokerImage:
    endpoint = Endpoint("PLAINTEXT", host or f"host-{number}", 9092)
    return BrokerImage(NodeId(number), 0, Uuid(bytes(16)), (endpoint,), rack=rack, fenced=fenced)


@given(st.integers(1, 40), st.integers(1, 7), st.data())
def test_leaders_and_replicas_are_spread_evenly(partitions: int, size: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, size))
    placed = place(partitions, factor, [broker(number) for number in range(size)], Random(data.draw(st.integers())))
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    leads = Counter(replicas[0] for replicas in placed)
    holds = Counter(replica for replicas in placed for replica in replicas)
    assert max(leads.values()) - min(leads[number] for number in range(size)) <= 1
    assert max(holds.values()) - min(holds[number] for number in range(size)) <= 2


def test_replicas_are_in_different_racks() -> None:
    brokers = [broker(number, rack=f"r{number % 3}") for number in range(6)]
    for replicas in place(50, 3, brokers, Random(1)):
        assert {replica % 3 for replica in replicas} == {0, 1, 2}


def test_within_a_rack_replicas_are_on_different_hosts() -> None:
    brokers = [broker(number, rack="zone", host=f"h{number // 2}") for number in range(4)]
    for replicas in place(50, 2, brokers, Random(1)):
        assert {replica // 2 for replica in replicas} == {0, 1}


def test_a_failed_brokers_load_goes_to_more_than_one_other() -> None:
    placed = place(60, 2, [broker(number) for number in range(6)], Random(1))
    assert len({replicas[1] for replicas in placed if replicas[0] == 0}) > 1


def test_fenced_brokers_come_last_and_never_lead() -> None:
    brokers = [broker(1), broker(2), broker(3, fenced=True)]
    assert all(3 not in replicas for replicas in place(10, 2, brokers, Random(1)))
    assert all(replicas[2] == 3 for replicas in place(10, 3, brokers, Random(1)))


@pytest.mark.parametrize("brokers", [[], [broker(1)], [broker(1, fenced=True), broker(2, fenced=True)]])
def test_too_few_brokers_are_refused(brokers: list[BrokerImage]) -> None:
    with pytest.raises(Refused) as refused:
        place(1, 2, brokers, Random(1))
    assert refused.value.error is INVALID_REPLICATION_FACTOR


def test_the_same_seed_places_alike() -> None:
    brokers = [broker(number) for number in range(5)]
    assert place(20, 3, brokers, Random(4)) == place(20, 3, brokers, Random(4))
