"""The blocking producer, consumer and admin."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import penstock
from penstock import blocking
from penstock.client.errors import ClientError, Closed, TimedOutWaiting, UnknownTopic
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 2}) as running:
        yield running


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("penstock-p", "penstock-c"))]


@pytest.mark.parametrize("name", ["Admin", "Consumer", "Producer"])
def test_a_twin_has_every_method_with_the_same_parameters(name: str) -> None:
    theirs, ours = getattr(penstock, name), getattr(blocking, name)
    # Blocking sends wait by themselves, and a blocking producer has asked for its producer id when it is there.
    skipped = {"wait_for_room", "adopt"}
    for method, found in inspect.getmembers(theirs, inspect.isfunction):
        if method.startswith("_") or method in skipped:
            continue
        twin = getattr(ours, method, None)
        assert twin is not None, f"{name}.{method} has no twin"
        assert list(inspect.signature(twin).parameters) == list(inspect.signature(found).parameters), method


def test_what_is_sent_is_read(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers) as producer:
        report = producer.send("plain", b"0", partition=0).result(within(10))
        for number in range(1, 1_000):
            producer.send("plain", b"%d" % number, partition=0)
    assert report.offset == 0
    with blocking.Consumer("plain", bootstrap_servers=node.bootstrap_servers, offset_reset="earliest") as consumer:
        values = [int(record.value or b"-1") for _, record in zip(range(1_000), consumer, strict=False)]
    assert values == list(range(1_000))


def test_threads_share_a_producer(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers, batch_size=1_000, buffer_memory=20_000) as producer:
        delivered: list[Any] = []

        def work(worker: int) -> None:
            delivered.extend([producer.send("shared", b"%d" % worker, partition=0) for _ in range(2_000)])

        workers = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        producer.flush()
        assert sorted(one.result(within(10)).offset for one in delivered) == list(range(8_000))


def test_many_rows_are_reported_together(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers) as producer:
        bulk = producer.send_batch("rows", [b"v"] * 5_000, partition=1)
        assert [(span.partition, span.base_offset, span.count) for span in bulk.result(within(10)).spans] == [
            (1, 0, 5_000)
        ]


def test_leaving_a_loop_early_loses_no_record(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers) as producer:
        for number in range(100):
            producer.send("early", b"%d" % number, partition=0)
    settings = {"bootstrap_servers": node.bootstrap_servers, "group_id": "early", "offset_reset": "earliest"}
    with blocking.Consumer("early", auto_commit=False, **settings) as consumer:
        for record in consumer:
            if record.offset == 9:
                break
        consumer.commit()
        tp = TopicPartition("early", 0)
        assert consumer.committed(tp)[tp].offset == 10  # type: ignore[union-attr]
        assert consumer.position(tp) == 10
        assert [record.offset for record in consumer.poll(5)] == list(range(10, 15))
        assert [record.offset for _, record in zip(range(3), consumer, strict=False)] == [15, 16, 17]


def test_closing_inside_a_loop_commits_what_was_given(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers) as producer:
        for number in range(100):
            producer.send("given", b"%d" % number, partition=0)
    settings = {"bootstrap_servers": node.bootstrap_servers, "group_id": "given", "offset_reset": "earliest"}
    with blocking.Consumer("given", **settings) as consumer:
        for record in consumer:
            if record.offset == 9:
                break
    with blocking.Consumer("given", **settings) as consumer:
        assert next(iter(consumer)).offset == 10


def test_topics_are_administered(node: EmbeddedBroker) -> None:
    with blocking.Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.create_topic("made", partitions=4)
        assert len(admin.describe_topic("made").partitions) == 4
        admin.delete_topic("made")
        with pytest.raises(ClientError):
            admin.describe_topic("made")


def test_a_failure_is_raised_where_the_result_is_asked_for(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers, retries=1, retry_backoff_ms=1, idempotence=False) as producer:
        producer.send("refused", b"v", partition=0).result(within(10))
        node.fail(api="Produce", code="INVALID_RECORD")
        delivery = producer.send("refused", b"v", partition=0)
        with pytest.raises(ClientError, match="INVALID_RECORD"):
            delivery.result(within(10))


def test_waiting_has_an_end() -> None:
    producer = blocking.Producer("127.0.0.1:1", max_block_ms=100)
    with pytest.raises(ClientError):
        producer.send("t", b"v")
    producer.close(timeout_ms=0)


def test_a_topic_that_nobody_creates_is_named(node: EmbeddedBroker) -> None:
    with (
        blocking.Producer(node.bootstrap_servers, create_topics=False, max_block_ms=3_000) as producer,
        pytest.raises(UnknownTopic, match="not-there"),
    ):
        producer.send("not-there", b"v")


def test_what_cannot_be_sent_is_refused_before_anybody_waits(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers, create_topics=False) as producer:
        for wrong in ({"value": 5}, {"headers": [(b"name", b"x")]}, {"timestamp": "now"}, {"partition": "0"}):
            with pytest.raises(TypeError, match=f"^{next(iter(wrong))}"):
                producer.send("never-made", **wrong)  # type: ignore[arg-type]


def test_a_result_that_is_not_there_in_time_says_so(node: EmbeddedBroker) -> None:
    with blocking.Producer(node.bootstrap_servers, linger_ms=20_000) as producer:
        delivery = producer.send("slow", b"v")
        with pytest.raises(TimedOutWaiting, match="still under way"):
            delivery.result(0.01)
    assert delivery.result(0).offset == 0


def test_an_interrupt_leaves_the_object_usable(node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with blocking.Producer(node.bootstrap_servers) as producer:
        original = producer._thread.begin

        def interrupted(work: Any) -> Any:
            future = original(work)

            def result(timeout: float | None = None) -> Any:
                raise KeyboardInterrupt

            future.result = result  # type: ignore[method-assign]
            return future

        with monkeypatch.context() as patched:
            patched.setattr(producer._thread, "begin", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.flush()
        assert producer.send("interrupted", b"v").result(within(10)).offset == 0


def test_a_callback_cannot_wait_for_itself(node: EmbeddedBroker) -> None:
    told: list[Any] = []
    with blocking.Producer(node.bootstrap_servers) as producer:

        def call(*_: Any) -> None:
            try:
                producer.flush()
            except ClientError as wrong:
                told.append(str(wrong))

        producer.send("self", b"v", on_delivery=call).result(within(10))
        producer.flush()
    assert told == ["a blocking call from inside a callback would wait for itself for ever"]


def test_a_closed_object_leaves_no_thread_and_takes_nothing(node: EmbeddedBroker) -> None:
    before = threads()
    producer = blocking.Producer(node.bootstrap_servers)
    consumer = blocking.Consumer(bootstrap_servers=node.bootstrap_servers)
    producer.close()
    producer.close()
    consumer.close()
    assert threads() == before
    with pytest.raises(Closed):
        producer.send("t", b"v")
    with pytest.raises(Closed):
        consumer.poll()


def test_a_process_that_forgets_to_close_still_sends_and_ends(node: EmbeddedBroker) -> None:
    script = (
        "from penstock.blocking import Producer\n"
        f"producer = Producer('{node.bootstrap_servers}', linger_ms=10_000)\n"
        "for _ in range(1000): producer.send('forgotten', b'v', partition=0)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=within(30))
    with blocking.Consumer(bootstrap_servers=node.bootstrap_servers) as consumer:
        assert consumer.end_offsets(("forgotten", 0)) == {TopicPartition("forgotten", 0): 1_000}


def test_importing_the_package_loads_no_loop() -> None:
    script = (
        "import sys, penstock; assert not {'asyncio', 'penstock.client'} & set(sys.modules), 'heavy'; penstock.Producer"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=within(30))
