"""Reading goes on when brokers refuse, hang up, come back or have lost something."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer import Consumer, CorruptBatch
from penstock.client.errors import NotAllowed, NotReachable, OffsetOutOfRange
from penstock.protocol.messages.fetch import FetchResponse
from penstock.server.doors import Handler
from penstock.testing import EmbeddedBroker, broker
from tests.patience import Patience, within
from tests.unit.client.consumer.made import batch, spoilt, two_transactions
from tests.unit.client.consumer.scene import PATIENCE_S, numbers, put, read, run, values


@pytest.fixture(scope="module")
def shared_node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running


@pytest.fixture
def node(shared_node: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    yield shared_node
    shared_node.clear_faults()


def consumer_of(node: EmbeddedBroker, *topics: str, **settings: object) -> Consumer:
    settings = {"offset_reset": "earliest", "retry_backoff_ms": 10, "retry_backoff_max_ms": 50, **settings}
    return Consumer(*topics, bootstrap_servers=node.bootstrap_servers, **settings)


@pytest.mark.parametrize(
    "code",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "KAFKA_STORAGE_ERROR",
        "OFFSET_NOT_AVAILABLE",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "UNKNOWN_SERVER_ERROR",
    ],
)
def test_a_refused_fetch_is_tried_again(node: EmbeddedBroker, code: str) -> None:
    topic = f"refused-{code}"
    put(node, topic, numbers(0, 10))
    node.fail(api="Fetch", code=code, times=2)

    async def main() -> None:
        async with consumer_of(node, topic) as consumer:
            assert await values(consumer, 10) == numbers(0, 10)
            node.fail(api="Fetch", code=code, times=1)
            # The fetch that waits at the broker already may bring the first of these; the one after it is refused.
            put(node, topic, numbers(10, 20))
            assert await values(consumer, 10) == numbers(10, 20)
            put(node, topic, numbers(20, 30))
            assert await values(consumer, 10) == numbers(20, 30)
            assert node.faults_left("Fetch") == 0

    run(main())


@pytest.mark.parametrize("api", ["Fetch", "ListOffsets", "Metadata", "ApiVersions"])
def test_a_connection_that_breaks_is_made_again(node: EmbeddedBroker, api: str) -> None:
    topic = f"broken-{api}"
    put(node, topic, numbers(0, 10))
    node.disconnect(api=api, times=2)

    async def main() -> None:
        async with consumer_of(node, topic) as consumer:
            assert await values(consumer, 10) == numbers(0, 10)
            assert node.faults_left(api) == 0

    run(main())


def test_what_access_rules_forbid_is_told(node: EmbeddedBroker) -> None:
    put(node, "secret", numbers(0, 1))
    node.fail(api="Fetch", code="TOPIC_AUTHORIZATION_FAILED")

    async def main() -> None:
        async with consumer_of(node, "secret") as consumer:
            with pytest.raises(NotAllowed, match="secret-0"):
                await read(consumer, 1)
            consumer.seek(("secret", 0), 0)
            assert await values(consumer, 1) == [b"0"]

    run(main())


def test_a_broker_that_comes_back_is_read_on() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 10))

        async def main() -> None:
            async with consumer_of(node, "t") as consumer:
                assert await values(consumer, 5) == numbers(0, 5)
                await asyncio.to_thread(node.restart)
                await asyncio.to_thread(put, node, "t", numbers(10, 20))
                assert await values(consumer, 15) == numbers(5, 20)

        run(main())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_whose_broker_hangs_up_on_everybody_is_told_and_goes_on_when_it_serves(protocol: str) -> None:
    """Nodes that are being stopped end new connections without a word, as ports of TLS do to whom speaks none."""
    with broker() as node:
        put(node, "t", numbers(0, 5))
        host, port = node.bootstrap_servers.split(":")
        node.stop()

        async def main() -> None:
            settings = {"group_id": "g", "group_protocol": protocol, "offset_reset": "earliest"}
            async with Consumer("t", bootstrap_servers=node.bootstrap_servers, **settings) as consumer:
                async with await asyncio.start_server(lambda _, writer: writer.close(), host, int(port)):
                    with pytest.raises(NotReachable, match="without a word"):
                        await consumer.poll(timeout_ms=60_000)
                await asyncio.to_thread(node.start)
                found: list[bytes | None] = []
                patience = Patience(30)
                while len(found) < 5:
                    assert not patience.over(), found
                    with contextlib.suppress(NotReachable):
                        found += [record.value for record in await consumer.poll(timeout_ms=1_000)]
                assert found == numbers(0, 5)

        run(main())


def test_closing_works_while_nobody_answers() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 10))

        async def main() -> None:
            async with consumer_of(node, "t", default_api_timeout_ms=1_000) as consumer:
                await read(consumer, 5)
                await asyncio.to_thread(node.stop)
            assert len(asyncio.all_tasks()) == 1

        run(main())


def sockets() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile by the broker's thread
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return {link for link in found if link.startswith("socket:")}


@pytest.mark.parametrize("group", [None, "cancelled"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_application_leaves_no_task_and_no_socket(
    node: EmbeddedBroker, group: str | None, times: int
) -> None:
    topic = f"cancelled-{group}-{times}"
    put(node, topic, numbers(0, 10))

    async def main() -> None:
        before = sockets()
        reached = asyncio.Event()

        async def application() -> None:
            async with consumer_of(node, topic, group_id=group) as consumer:
                async for record in consumer:
                    if record.offset == 9:
                        reached.set()

        running = asyncio.ensure_future(application())
        await reached.wait()
        assert sockets() - before
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        async with asyncio.timeout(within(PATIENCE_S)):
            # The broker runs in this process too, and closes its ends when it sees ours closed.
            while sockets() - before:
                await asyncio.sleep(0.01)

    run(main())


def test_a_consumer_of_nobody_ends_too() -> None:
    async def main() -> None:
        async with Consumer("t", bootstrap_servers="127.0.0.1:1", retry_backoff_ms=10) as consumer:
            assert await consumer.poll(timeout_ms=100) == []

    run(main())


# What other logs would hold: the broker's Fetch reply is replaced on its way out.


class Standing:
    """Stands in front of Fetch and changes what replies say of the first partition."""

    def __init__(self, node: EmbeddedBroker, change: Callable[[FetchResponse.PartitionData], None]) -> None:
        self.change: Callable[[FetchResponse.PartitionData], None] | None = change
        node.node.override("Fetch", self._wrap)

    def _wrap(self, handler: Handler) -> Handler:
        async def answer(outcome: Any) -> Any:
            reply = await outcome if hasattr(outcome, "__await__") else outcome
            if self.change is not None and isinstance(reply, FetchResponse):
                for topic in reply.responses:
                    for data in topic.partitions:
                        self.change(data)
            return reply

        return lambda ctx, request: answer(handler(ctx, request))


def test_a_broken_batch_is_named_and_can_be_left_out() -> None:
    log = batch(0, 2) + spoilt(batch(2, 3)) + batch(5, 1)
    with broker() as node:
        put(node, "t", numbers(0, 6))

        async def main() -> None:
            standing = Standing(node, lambda data: setattr(data, "records", log))
            async with consumer_of(node, "t") as consumer:
                assert [r.offset for r in await read(consumer, 2)] == [0, 1]
                with pytest.raises(CorruptBatch, match=r"t-0: the records at offset 2 .* seek to 5") as told:
                    await read(consumer, 1)
                assert not told.value.retriable
                standing.change = None
                consumer.seek(("t", 0), 5)
                assert await values(consumer, 1) == [b"5"]

        run(main())


def test_committed_readers_do_not_see_what_was_aborted() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 6))

        async def main() -> None:
            Standing(node, two_transactions)
            async with consumer_of(node, "t", isolation_level="read_committed") as consumer:
                assert await values(consumer, 2) == [b"committed", b"plain"]
                assert await consumer.position(("t", 0)) == 6
            async with consumer_of(node, "t") as consumer:
                assert await values(consumer, 4) == [b"aborted", b"aborted", b"committed", b"plain"]

        run(main())


def test_a_replica_that_the_leader_prefers_is_asked_and_left_when_it_refuses() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 3))
        told = []

        def change(data: FetchResponse.PartitionData) -> None:
            # Broker 1 is the only one there is: first it sends us to broker 9, which nobody can reach.
            if not told:
                told.append(9)
                data.preferred_read_replica = 9
                data.records = None

        async def main() -> None:
            Standing(node, change)
            async with consumer_of(node, "t", client_rack="here") as consumer:
                assert await values(consumer, 3) == numbers(0, 3)
                assert told == [9]

        run(main())


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_records_that_a_new_leader_lost_are_noticed(policy: str) -> None:
    with broker() as node:
        put(node, "t", numbers(0, 5))
        behind = node.snapshot()
        put(node, "t", numbers(5, 10))

        async def main() -> None:
            async with consumer_of(node, offset_reset=policy) as consumer:
                consumer.assign([("t", 0)])
                consumer.seek(("t", 0), 0)
                await read(consumer, 10)
                # The log goes back to before what we have read, and leadership moves on to new epochs.
                await asyncio.to_thread(node.restore, behind)
                await asyncio.to_thread(node.restart)
                await asyncio.to_thread(put, node, "t", [b"other"])
                if policy == "none":
                    with pytest.raises(OffsetOutOfRange):
                        await read(consumer, 1)
                else:
                    async with asyncio.timeout(within(PATIENCE_S)):
                        while b"other" not in await values(consumer, 1):
                            pass

        run(main())


def test_a_broker_that_is_away_is_told_a_few_times_and_when_it_is_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    refreshed = ClusterView.refreshed

    async def counted(view: ClusterView) -> None:
        nonlocal tries
        tries += 1
        await refreshed(view)

    async def main(node: EmbeddedBroker) -> None:
        async with consumer_of(node, "away", retry_backoff_ms=1, retry_backoff_max_ms=4) as consumer:
            assert await values(consumer, 1) == numbers(0, 1)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, node.stop)
            monkeypatch.setattr(ClusterView, "refreshed", counted)
            async with asyncio.timeout(within(PATIENCE_S)):
                while tries < 30:
                    await asyncio.sleep(0.001)
            await loop.run_in_executor(None, node.start)
            await loop.run_in_executor(None, put, node, "away", numbers(1, 2))
            assert await values(consumer, 1) == numbers(1, 2)

    with broker() as node:
        put(node, "away", numbers(0, 1))
        run(main(node))
    words = [record.getMessage() for record in caplog.records if record.name.startswith("penstock.client")]
    begun = [line for line in words if line.endswith("; trying on")]
    over = [line for line in words if " again, after " in line]
    assert 1 <= len(begun) == len(over) <= 2, words
    assert all(line in begun or line in over or " tries: " in line for line in words), words
