"""Deliveries that threads wait for."""

from __future__ import annotations

import threading
import time
from typing import TypeVar

from penstock.client.errors import TimedOutWaiting
from penstock.client.producer.delivery import BatchReport, BulkDelivery, Delivery, Report

D = TypeVar("D", bound=Delivery | BulkDelivery)


class BlockingDelivery(Delivery):
    """The fate of one record; `result()` waits for it."""

    __slots__ = ()

    lock: threading.Lock
    """The producer's. Every producer has a class of its own, so that a record need not carry it."""

    def result(self, timeout: float | None = None) -> Report:
        """Where the record landed. Waits up to `timeout` seconds, then TimedOutWaiting; raises why it failed."""
        wait(self, self.lock, timeout)
        return self.outcome()


def delivery_class(lock: threading.Lock) -> type[BlockingDelivery]:
    """The class of one producer's deliveries."""
    return type("BlockingDelivery", (BlockingDelivery,), {"__slots__": (), "lock": lock, "__doc__": None})


class BlockingBulkDelivery:
    """The fate of many records; `result()` waits for it."""

    __slots__ = ("_inner", "_lock")

    def __init__(self, inner: BulkDelivery, lock: threading.Lock) -> None:
        self._inner, self._lock = inner, lock

    def result(self, timeout: float | None = None) -> BatchReport:
        """Where the records landed. Waits up to `timeout` seconds, then TimedOutWaiting; raises why some failed."""
        wait(self._inner, self._lock, timeout)
        return self._inner.outcome()

    def done(self) -> bool:
        return self._inner.done()

    @property
    def delivered(self) -> int:
        """How many landed, also after a failure."""
        return self._inner.delivered


def wait(delivery: Delivery | BulkDelivery, lock: threading.Lock, timeout_s: float | None) -> None:
    """Returns when it is done."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while not delivery.done():
        woken = threading.Event()
        with lock:
            # Batches are settled under the lock, so this is before the waking or after the settling.
            if delivery.done():
                return
            delivery.add_waker(woken.set)
        left_s = None if deadline is None else deadline - time.monotonic()
        if not woken.wait(left_s if left_s is None else max(left_s, 0)):
            raise TimedOutWaiting(f"not delivered within {timeout_s} s; it is still under way", retriable=True)
