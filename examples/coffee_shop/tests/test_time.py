"""Days that pass in no time, and tests that start where another one stopped."""

from __future__ import annotations

from coffee_shop.orders import ORDERS, Desk, Order
from coffee_shop.till import takings

from penstock.blocking import Admin
from penstock.testing import EmbeddedBroker

TEA = Order(1, "grace", "tea", 300)


def test_old_orders_are_forgotten(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(TEA)
        penstock_broker.advance(days=8)
        assert takings(penstock_broker.bootstrap_servers) == {}
        assert desk.take(TEA) == 1


def test_orders_of_the_week_are_kept(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(TEA)
    penstock_broker.advance(days=6)
    assert takings(penstock_broker.bootstrap_servers) == {"grace": 300}


def test_a_test_can_go_back_to_where_it_began(penstock_broker: EmbeddedBroker) -> None:
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(TEA)
    snapshot = penstock_broker.snapshot()
    for _ in range(2):
        with Desk(penstock_broker.bootstrap_servers) as desk:
            desk.take(TEA)
        assert takings(penstock_broker.bootstrap_servers) == {"grace": 600}
        penstock_broker.restore(snapshot)
        assert takings(penstock_broker.bootstrap_servers) == {"grace": 300}


def test_a_topic_can_be_configured(penstock_broker: EmbeddedBroker) -> None:
    with Admin(bootstrap_servers=penstock_broker.bootstrap_servers) as admin:
        admin.create_topic(ORDERS, partitions=1, configs={"retention.ms": "3600000"})
    with Desk(penstock_broker.bootstrap_servers) as desk:
        desk.take(TEA)
    penstock_broker.advance(hours=2)
    assert takings(penstock_broker.bootstrap_servers) == {}
