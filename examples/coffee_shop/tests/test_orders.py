"""The desk: bytes, keys, errors, lost replies."""

from __future__ import annotations

import pytest
from coffee_shop.orders import ORDERS, Desk, Order, Unreadable, from_bytes, to_bytes
from coffee_shop.till import all_values, takings

from penstock.blocking import Admin
from penstock.testing import EmbeddedBroker

FLAT_WHITE = Order(1, "ada", "flat white", 380)


def test_an_order_survives_its_bytes(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(FLAT_WHITE)
    assert [from_bytes(value) for value in all_values(penstock_broker.bootstrap_servers, ORDERS)] == [FLAT_WHITE]


def test_offsets_count_up(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        assert [desk.take(FLAT_WHITE) for _ in range(3)] == [0, 1, 2]


def test_a_customers_orders_stay_in_order(penstock_broker: EmbeddedBroker) -> None:
    with Admin(bootstrap_servers=penstock_broker.bootstrap_servers) as admin:
        admin.create_topic(ORDERS, partitions=6)
    orders = [Order(number, f"customer {number % 7}", "espresso", 250) for number in range(70)]
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take_all(orders)
    seen = [from_bytes(value) for value in all_values(penstock_broker.bootstrap_servers, ORDERS)]
    for customer in range(7):
        numbers = [order.number for order in seen if order.customer == f"customer {customer}"]
        assert numbers == sorted(numbers)
        assert len(numbers) == 10


def test_a_busy_broker_is_asked_again(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(FLAT_WHITE)
        penstock_broker.fail(api="Produce", code="NOT_ENOUGH_REPLICAS", times=2)
        assert desk.take(FLAT_WHITE) == 1
    assert penstock_broker.faults_left("Produce") == 0


def test_a_lost_reply_sells_nothing_twice(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(FLAT_WHITE)
        penstock_broker.disconnect(api="Produce", served=True)
        desk.take(FLAT_WHITE)
    assert takings(penstock_broker.bootstrap_servers) == {"ada": 760}


def test_a_restart_of_the_broker_goes_unnoticed(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(FLAT_WHITE)
        penstock_broker.restart()
        assert desk.take(FLAT_WHITE) == 1


def test_a_frozen_broker_takes_the_order_when_it_thaws(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(FLAT_WHITE)
        with penstock_broker.paused():
            waiting = desk._producer.send(ORDERS, to_bytes(FLAT_WHITE), key="ada")
            with pytest.raises(TimeoutError):
                waiting.result(0.05)
        assert waiting.result(30).offset == 1


def test_nonsense_is_no_order() -> None:
    with pytest.raises(Unreadable):
        from_bytes(b"two coffees please")
