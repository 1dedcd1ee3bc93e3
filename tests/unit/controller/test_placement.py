"""Where new partitions go."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.controller.placement import Load, place
from penstock.metadata.entities import BrokerImage, Endpoint, TopicImage
from penstock.model.errors import INVALID_REPLICATION_FACTOR, Refused
from penstock.model.ids import NodeId, Uuid
from tests.unit.controller.desk import Desk, creation, topic


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


def test_brokers_that_shut_down_come_last_too() -> None:
    leaving = broker(3)._replace(in_controlled_shutdown=True)
    assert all(3 not in replicas for replicas in place(10, 2, [broker(1), broker(2), leaving], Random(1)))


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_many_small_topics_are_as_even_as_a_large_one(topics: int, seed: int) -> None:
    brokers, load, random = [broker(number) for number in range(5)], Load(), Random(seed)
    for _ in range(topics):
        place(1, 3, brokers, random, load)
    assert max(load.leads.values()) - min(load.leads.get(number, 0) for number in range(5)) <= 1
    assert max(load.holds.values()) - min(load.holds.get(number, 0) for number in range(5)) <= 3


def test_a_topic_is_spread_over_all_brokers_although_one_is_new_and_empty() -> None:
    load = Load.of({1: 100, 2: 100}, {1: 200, 2: 200})
    placed = place(6, 1, [broker(number) for number in (1, 2, 3)], Random(1), load)
    assert Counter(replicas[0] for replicas in placed) == {1: 2, 2: 2, 3: 2}
    assert place(1, 1, [broker(number) for number in (1, 2, 3)], Random(1), load) == [[3]]


def _leads(topics: list[TopicImage]) -> Counter[int]:
    return Counter(each.leader for made in topics for each in made.partitions)


def test_topics_of_one_request_and_of_many_are_spread_alike() -> None:
    desk = Desk()
    desk.join(1, 2, 3)
    desk.ask(creation(*(topic(f"a{number}", 1, 2) for number in range(9))))
    assert _leads(list(desk.image.topics.values())) == {1: 3, 2: 3, 3: 3}
    for number in range(6):
        desk.create(f"b{number}", 1, 2)
    assert _leads(list(desk.image.topics.values())) == {1: 5, 2: 5, 3: 5}


def test_what_a_broker_leads_while_another_is_away_does_not_count() -> None:
    desk = Desk()
    desk.join(1, 2, 3)
    desk.create("a", 30, 3)
    desk.heartbeat(3, want_fence=True)
    desk.heartbeat(3)
    desk.create("b", 3, 3)
    made = desk.image.topic("b")
    assert made is not None
    assert _leads([made]) == {1: 1, 2: 1, 3: 1}
