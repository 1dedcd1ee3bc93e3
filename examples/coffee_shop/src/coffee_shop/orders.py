"""An order, its bytes, and the desk that takes orders."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from penstock.blocking import Producer

ORDERS = "orders"


@dataclass(frozen=True)
class Order:
    number: int
    customer: str
    drink: str
    price_cents: int


class Unreadable(ValueError):
    """Bytes that are no order."""


def to_bytes(order: Order) -> bytes:
    return json.dumps(asdict(order)).encode()


def from_bytes(data: bytes) -> Order:
    try:
        return Order(**json.loads(data))
    except (ValueError, TypeError) as wrong:
        raise Unreadable(str(wrong)) from wrong


class Desk:
    """Takes orders. Those of one customer stay in order, because they share a key and so a partition."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = Producer(bootstrap_servers=bootstrap_servers, acks="all", linger_ms=0)

    def take(self, order: Order) -> int:
        """Returns the offset at which the order is safe."""
        return self._producer.send(ORDERS, to_bytes(order), key=order.customer).result(30).offset

    def take_all(self, orders: list[Order]) -> None:
        """Returns when all of them are safe."""
        for order in orders:
            self._producer.send(ORDERS, to_bytes(order), key=order.customer)
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
