"""The baristas: a group that shares the work, and takes over from who is gone."""

from __future__ import annotations

import pytest
from coffee_shop.barista import BARISTAS, DRINKS, SPILT, Barista
from coffee_shop.orders import ORDERS, Desk, Order
from coffee_shop.till import all_values

from penstock.blocking import Admin, Producer
from penstock.testing import EmbeddedBroker


def espressos(count: int) -> list[Order]:
    return [Order(number, f"customer {number % 20}", "espresso", 250) for number in range(count)]


@pytest.fixture
def counter(penstock_broker: EmbeddedBroker) -> EmbeddedBroker:
    """A broker with a topic of four partitions."""
    with Admin(bootstrap_servers=penstock_broker.bootstrap_servers) as admin:
        admin.create_topic(ORDERS, partitions=4)
    return penstock_broker


def order(counter: EmbeddedBroker, count: int) -> None:
    with Desk(counter.bootstrap_servers) as desk:
        desk.take_all(espressos(count))


def test_every_order_becomes_a_drink(counter: EmbeddedBroker) -> None:
    order(counter, 40)
    with Barista(counter.bootstrap_servers) as barista:
        barista.work_until(40)
    assert all_values(counter.bootstrap_servers, DRINKS) == [b"espresso"] * 40


def test_what_cannot_be_read_is_set_aside(counter: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=counter.bootstrap_servers) as producer:
        producer.send(ORDERS, b"mumble").result(30)
    with Barista(counter.bootstrap_servers) as barista:
        barista.work_until(1)
        assert barista.made == []
    assert all_values(counter.bootstrap_servers, SPILT) == [b"mumble"]
    assert all_values(counter.bootstrap_servers, DRINKS) == []


def test_the_next_shift_goes_on_where_the_last_one_stopped(counter: EmbeddedBroker) -> None:
    order(counter, 10)
    with Barista(counter.bootstrap_servers) as first:
        first.work_until(10)
    order(counter, 5)
    with Barista(counter.bootstrap_servers) as second:
        second.work_until(5)
        assert len(second.made) == 5


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_baristas_share_the_counter(counter: EmbeddedBroker, protocol: str) -> None:
    with (
        Barista(counter.bootstrap_servers, group_protocol=protocol) as one,
        Barista(counter.bootstrap_servers, group_protocol=protocol) as two,
    ):
        share(one, two)
        order(counter, 60)
        work(60, one, two)
        assert {each.number for each in one.made}.isdisjoint(each.number for each in two.made)


def share(one: Barista, two: Barista) -> None:
    """Works until both have two partitions."""
    for _ in range(300):
        one.work(20)
        two.work(20)
        if one.partitions == two.partitions == 2:
            return
    raise TimeoutError(f"one has {one.partitions} partitions, the other {two.partitions}")


def work(count: int, *baristas: Barista) -> None:
    for _ in range(300):
        for barista in baristas:
            barista.work(20)
        if sum(len(barista.made) for barista in baristas) >= count:
            return
    raise TimeoutError("not all orders were made")


def test_who_walks_out_is_replaced(counter: EmbeddedBroker) -> None:
    with Barista(counter.bootstrap_servers, heartbeat_interval_ms=300) as stays:
        with Barista(counter.bootstrap_servers) as leaves:
            share(stays, leaves)
        order(counter, 40)
        stays.work_until(40)


def test_who_is_silent_for_too_long_is_replaced(counter: EmbeddedBroker) -> None:
    silent = Barista(counter.bootstrap_servers)
    try:
        while not silent.partitions:
            silent.work(20)
        counter.fail(api="Heartbeat", code="COORDINATOR_NOT_AVAILABLE", times=1_000)
        counter.advance(seconds=46)
        counter.clear_faults()
        order(counter, 10)
        with Barista(counter.bootstrap_servers) as awake:
            work(10, awake, silent)
    finally:
        silent.close()


def test_the_counter_knows_how_far_behind_it_is(counter: EmbeddedBroker) -> None:
    with Barista(counter.bootstrap_servers) as barista:
        order(counter, 10)
        barista.work_until(10)
    order(counter, 7)
    with Admin(bootstrap_servers=counter.bootstrap_servers) as admin:
        assert sum(part.lag or 0 for part in admin.group_lag(BARISTAS)) == 7


def test_a_crash_of_the_broker_forgets_no_commit(counter: EmbeddedBroker) -> None:
    order(counter, 10)
    with Barista(counter.bootstrap_servers) as barista:
        barista.work_until(10)
    counter.restart()
    order(counter, 3)
    with Barista(counter.bootstrap_servers) as barista:
        barista.work_until(3)
        assert len(barista.made) == 3
