"""Callbacks of a blocking consumer run where the application is, and may call the consumer."""

from __future__ import annotations

import threading

import pytest

from penstock import TopicPartition
from penstock.blocking import Consumer, Producer
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within


def filled(running: EmbeddedBroker, count: int = 5) -> None:
    with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
        producer.send_batch("t", [b"%d" % number for number in range(count)], partition=0).result(within(20))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_on_assigned_may_seek_and_on_revoked_may_commit(protocol: str) -> None:
    threads: set[threading.Thread] = set()
    with broker() as running:
        filled(running)
        settings = {"bootstrap_servers": running.bootstrap_servers, "group_id": "g", "group_protocol": protocol}
        with Consumer(enable_auto_commit=False, offset_reset="earliest", **settings) as consumer:

            def assigned(partitions: list[TopicPartition]) -> None:
                threads.add(threading.current_thread())
                for partition in partitions:
                    consumer.seek(partition, 3)

            def revoked(_partitions: list[TopicPartition]) -> None:
                threads.add(threading.current_thread())
                consumer.commit()

            consumer.subscribe(["t"], on_assigned=assigned, on_revoked=revoked)
            values: list[bytes | None] = []
            while len(values) < 2:
                values += [record.value for record in consumer.poll(timeout_ms=20_000)]
            assert values == [b"3", b"4"]
        assert threads == {threading.current_thread()}
        with Consumer("t", offset_reset="earliest", **settings) as again:
            assert again.committed(("t", 0))[TopicPartition("t", 0)].offset == 5  # type: ignore[union-attr]


def test_a_callback_that_raises_is_told_to_the_next_poll() -> None:
    with broker() as running:
        filled(running)
        with Consumer(bootstrap_servers=running.bootstrap_servers, group_id="g", offset_reset="earliest") as consumer:
            consumer.subscribe(["t"], on_assigned=lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                next(iter(consumer))


def test_a_coroutine_function_is_fine_too() -> None:
    told: list[list[TopicPartition]] = []

    async def assigned(partitions: list[TopicPartition]) -> None:
        told.append(partitions)

    with broker() as running:
        filled(running)
        with Consumer(bootstrap_servers=running.bootstrap_servers, group_id="g", offset_reset="earliest") as consumer:
            consumer.subscribe(["t"], on_assigned=assigned)
            assert next(iter(consumer)).value == b"0"
    assert told == [[TopicPartition("t", 0)]]
