"""Makes drinks: reads orders as one of a group, writes drinks, commits what is done."""

from __future__ import annotations

from contextlib import suppress

from coffee_shop.orders import ORDERS, Order, Unreadable, from_bytes
from penstock.blocking import Consumer, Producer
from penstock.client.errors import CommitFailed

DRINKS = "drinks"
SPILT = "spilt"
BARISTAS = "baristas"


class Barista:
    """One member of the group. A drink may be made twice after a crash, an order is never forgotten."""

    def __init__(self, bootstrap_servers: str, **settings: object) -> None:
        self._consumer = Consumer(
            ORDERS,
            bootstrap_servers=bootstrap_servers,
            group_id=BARISTAS,
            offset_reset="earliest",
            enable_auto_commit=False,
            **settings,
        )
        self._producer = Producer(bootstrap_servers=bootstrap_servers, linger_ms=0)
        self.made: list[Order] = []

    def work(self, timeout_ms: int = 200) -> int:
        """Makes what has been ordered; returns how many orders that were."""
        records = self._consumer.poll(timeout_ms=timeout_ms)
        for record in records:
            try:
                order = from_bytes(record.value or b"")
            except Unreadable as wrong:
                self._producer.send(SPILT, record.value, key=record.key, headers=[("why", str(wrong).encode())])
                continue
            self._producer.send(DRINKS, order.drink, key=order.customer)
            self.made.append(order)
        if records:
            self._producer.flush()
            # When the group went on without us, somebody else makes these drinks again.
            with suppress(CommitFailed):
                self._consumer.commit()
        return len(records)

    def work_until(self, count: int, polls: int = 200) -> None:
        """Works until `count` orders were handled here."""
        handled = 0
        for _ in range(polls):
            handled += self.work()
            if handled >= count:
                return
        raise TimeoutError(f"{handled} orders came, not {count}")

    @property
    def partitions(self) -> int:
        return len(self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()

    def __enter__(self) -> Barista:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
