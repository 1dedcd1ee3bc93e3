"""The coordinator of transactions of one node, asked over the wire: whole transactions, codes by version, who may."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NOT_COORDINATOR,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Offset
from penstock.protocol.batch import read_records
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.messages.update_features import UpdateFeaturesRequest
from tests.walks.data_plane import Client, Machine, walk
from tests.walks.test_denied import Grants
from tests.walks.transacting import read_committed
from tests.walks.transactional_ids import Producer, coordinator_of, offset_of

FEW = {"transaction_state_log_num_partitions": "3", "offsets_topic_num_partitions": "2"}


# -- finding it


@pytest.mark.parametrize("version", range(1, 7))
def test_the_first_who_looks_for_a_coordinator_brings_the_topic(version: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said: dict[str, Any] = {"key": "t"} if version < 4 else {"coordinator_keys": ["t", "u"]}
        reply = await client.ask(FindCoordinatorRequest(key_type=1, **said), version)
        found = [reply] if version < 4 else reply.coordinators
        assert {(each.error_code, each.node_id, each.port) for each in found} == {(0, 1, machine.node.port)}
        image = machine.node.control.metadata.image
        topic = image.topic(TRANSACTIONS_TOPIC)
        assert topic is not None
        assert len(topic.partitions) == 3
        assert image.config(2, TRANSACTIONS_TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }
        assert image.topic(OFFSETS_TOPIC) is None, "nobody has spoken of a group"

    walk(steps, **FEW)


@pytest.mark.parametrize(("timeout_ms", "error"), [(0, INVALID_TRANSACTION_TIMEOUT), (60_000, NOT_COORDINATOR)])
def test_what_is_wrong_with_a_request_is_told_by_those_who_do_not_coordinate_it_too(
    timeout_ms: int, error: ErrorCode
) -> None:
    """Nobody has looked for the coordinator, so there is none: Kafka looks at the time-out first."""

    async def steps(_machine: Machine, client: Client) -> None:
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=timeout_ms)
        assert (await client.ask(request, 2)).error_code == error.code

    walk(steps, **FEW)


def test_a_node_that_knows_no_transactions_is_nobodys_coordinator() -> None:
    """In the middle of an upgrade it may lead the partition; it would stop the producer for good."""

    async def steps(machine: Machine, client: Client) -> None:
        assert await coordinator_of(client, "copier") == 1
        brokers = machine.node.broker.services.metadata.image.brokers
        brokers[1] = brokers[1]._replace(features=())
        assert await coordinator_of(client, "copier") == -COORDINATOR_NOT_AVAILABLE.code

    walk(steps, **FEW)


LOADED = """
import asyncio, sys
from tests.walks.data_plane import walk
async def steps(machine, client):
    await client.create("orders")
    await client.produce("orders", b"x")
walk(steps)
print(*sorted(name for name in sys.modules if "coordinators.transactions" in name or name.endswith(
    ("coordinating.markers", "coordinating.marker_queues", "coordinating.verifying"))))
"""


def test_a_node_without_transactions_loads_none_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# -- whole transactions


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "new"])
def test_committed_records_are_seen_together_and_aborted_ones_never(classic: bool) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 3)
        await coordinator_of(client, "copier")
        producer = Producer(client, classic=classic)
        assert await producer.init() == 0
        assert producer.epoch == 0
        for round_, commit in enumerate((True, False, True)):
            if classic:
                assert await producer.add("orders", 0, 1, 2) == [0, 0, 0]
            sent = await producer.send("orders", b"%d" % round_, partitions=(0, 1, 2))
            assert [error for error, _ in sent] == [0, 0, 0]
            assert await read_committed(client, "orders", 1) == [b"0"][:round_], "nothing of an open one shows"
            assert await producer.end(commit=commit) == 0
            await producer.settled()
        for partition in range(3):
            assert await read_committed(client, "orders", partition) == [b"0", b"2"]
        assert producer.epoch == (0 if classic else 3)
        state = await producer.described()
        assert (state.transaction_state, state.topics) == ("CompleteCommit", [])

    walk(steps, **FEW)


def states_written(machine: Machine) -> Iterator[bytes]:
    for hosted in machine.node.partitions:
        if hosted.name.topic == TRANSACTIONS_TOPIC:
            log = hosted.require_log()
            read = log.read(Offset(0), max_bytes=1 << 20, limit=log.written, at_least_one=True)
            view = memoryview(b"".join(span.read() for span in read.spans))
            for start, header in scan_batches(view):
                assert header.last_offset == header.base_offset, "one record in a batch"
                yield from (each.value for each in read_records(view[start : start + header.size]) if each.value)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_both_protocols_are_served_at_every_level_of_the_feature(level: int) -> None:
    """The level says how the coordinator writes and fences; how a transaction goes is for its requests to say."""

    async def steps(machine: Machine, client: Client) -> None:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature="transaction.version", max_version_level=level, upgrade_type=2
        )
        if level < 2:
            assert (await client.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)).error_code == 0
        await client.create("orders")
        await coordinator_of(client, "copier")
        producers = [Producer(client, "old", classic=True), Producer(client, "new")]
        for producer in producers:
            assert await producer.init() == 0
            for value, commit in ((b"kept", True), (b"lost", False)):
                if producer.classic:
                    assert await producer.add("orders", 0) == [0]
                assert [error for error, _ in await producer.send("orders", value)] == [0]
                assert await producer.end(commit=commit) == 0
                await producer.settled()
        assert await read_committed(client, "orders") == [b"kept", b"kept"]
        assert [producer.epoch for producer in producers] == [0, 2]
        versions = {int.from_bytes(value[:2], "big") for value in states_written(machine)}
        assert versions == {0 if level == 0 else 1}

    walk(steps, **FEW)


def test_a_classic_producer_adds_all_partitions_or_none() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        await coordinator_of(client, "copier")
        producer = Producer(client, classic=True)
        await producer.init()
        codes = await producer.add("orders", 0, 1, 7)
        assert codes == [OPERATION_NOT_ATTEMPTED.code, OPERATION_NOT_ATTEMPTED.code, UNKNOWN_TOPIC_OR_PARTITION.code]
        assert await producer.add("nowhere", 0) == [UNKNOWN_TOPIC_OR_PARTITION.code]
        assert (await producer.described()).transaction_state == "Empty"
        sent = await producer.send("orders", b"x")
        assert [error for error, _ in sent] == [120], "what was not added is not written"
        assert await producer.add("orders", 0, 1) == [0, 0]
        state = await producer.described()
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [("orders", [0, 1])]

    walk(steps, **FEW)


def test_clients_take_no_partition_of_a_coordinator_into_their_transaction() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        await coordinator_of(client, "copier")
        producer = Producer(client, classic=True)
        await producer.init()
        assert await producer.add(TRANSACTIONS_TOPIC, 0) == [TOPIC_AUTHORIZATION_FAILED.code]
        assert (await producer.described()).transaction_state == "Empty"

    walk(steps, **FEW)


def test_offsets_join_by_the_partition_of_their_group_and_bring_its_topic() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator_of(client, "copier")
        producer = Producer(client, classic=True)
        await producer.init()
        assert await producer.add_offsets("readers") == 0
        state = await producer.described()
        home = machine.node.broker.groups.home_of("readers")
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [(OFFSETS_TOPIC, [home])]
        assert await producer.end(commit=True) == 0
        await producer.settled()
        assert (await producer.described()).transaction_state == "CompleteCommit"

    walk(steps, **FEW)


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "new"])
def test_offsets_are_committed_with_the_records_that_were_made_of_them(classic: bool) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("in")
        await client.create("out")
        await coordinator_of(client, "copier")
        await client.ask(FindCoordinatorRequest(key="readers"), 2)
        producer = Producer(client, classic=classic)
        await producer.init()
        for offset, commit, stands_at in ((5, True, 5), (9, False, 5), (7, True, 7)):
            if classic:
                assert await producer.add("out", 0) == [0]
            assert await producer.send("out", b"%d" % offset) != []
            assert await producer.commit_offset("readers", "in", offset) == 0
            assert await offset_of(client, "readers", "in") == (88, -1), "nobody is shown what is not settled"
            assert await producer.end(commit=commit) == 0
            await producer.settled()
            assert await offset_of(client, "readers", "in") == (0, stands_at)
        assert await read_committed(client, "out") == [b"5", b"7"]

    walk(steps, **FEW)


def test_brokers_ask_for_several_transactions_at_once() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        await coordinator_of(client, "a")
        producers = [Producer(client, name) for name in ("a", "b")]
        for producer in producers:
            await producer.init()
        made = AddPartitionsToTxnRequest

        def wanted(producer: Producer, *partitions: int, verify: bool = False, epoch: int = 0) -> Any:
            return made.AddPartitionsToTxnTransaction(
                transactional_id=producer.name,
                producer_id=producer.id,
                producer_epoch=epoch,
                verify_only=verify,
                topics=[made.AddPartitionsToTxnTopic(name="orders", partitions=list(partitions))],
            )

        async def told(*transactions: Any, version: int) -> dict[str, list[int]]:
            reply = await client.ask(made(transactions=list(transactions)), version)
            assert reply.error_code == 0
            return {
                result.transactional_id: [
                    each.partition_error_code for topic in result.topic_results for each in topic.results_by_partition
                ]
                for result in reply.results_by_transaction
            }

        a, b = producers
        for version in (4, 5):
            assert await told(wanted(a, 0), wanted(b, 1, epoch=9), version=version) == {
                "a": [0],
                "b": [PRODUCER_FENCED.code],
            }
            assert await told(wanted(a, 0, 1, verify=True), wanted(b, 0, 9), version=version) == {
                "a": [0, 120],
                "b": [OPERATION_NOT_ATTEMPTED.code, UNKNOWN_TOPIC_OR_PARTITION.code],
            }

    walk(steps, **FEW)


# -- who is refused, and how


def test_what_init_producer_id_does_not_take() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator_of(client, "copier")

        async def told(**said: Any) -> tuple[int, int, int]:
            request = InitProducerIdRequest(**{"transactional_id": "t", "transaction_timeout_ms": 1_000, **said})
            reply = await client.ask(request, 5)
            return reply.error_code, reply.producer_id, reply.producer_epoch

        assert await told(transactional_id="") == (INVALID_REQUEST.code, -1, -1)
        assert await told(producer_id=5) == (INVALID_REQUEST.code, -1, -1)
        assert await told(producer_epoch=5) == (INVALID_REQUEST.code, -1, -1)
        assert await told(transactional_id=None, producer_id=-5) == (INVALID_REQUEST.code, -1, -1)
        assert await told(transaction_timeout_ms=0) == (INVALID_TRANSACTION_TIMEOUT.code, -1, -1)
        assert await told(transaction_timeout_ms=900_001) == (INVALID_TRANSACTION_TIMEOUT.code, -1, -1)
        assert (await told(transaction_timeout_ms=900_000))[0] == 0

    walk(steps, **FEW)


def test_a_second_producer_fences_the_first_in_the_words_of_every_version() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await coordinator_of(client, "copier")
        old, new = Producer(client, classic=True), Producer(client, classic=True)
        await old.init()
        assert await old.add("orders", 0) == [0]
        assert await old.send("orders", b"lost") == [(0, 0)]
        assert (await new.ask_init()).error_code == CONCURRENT_TRANSACTIONS.code
        assert await new.init() == 0
        assert (new.id, new.epoch) == (old.id, old.epoch + 2)
        for version, code in ((0, INVALID_PRODUCER_EPOCH), (1, INVALID_PRODUCER_EPOCH), (2, PRODUCER_FENCED)):
            assert await old.add("orders", 0, version=version) == [code.code]
            assert await old.add_offsets("g", version=version) == code.code
            assert await old.end(commit=True, version=version) == code.code
        assert await old.end(commit=True, version=5) == PRODUCER_FENCED.code
        assert (await old.ask_init(named=True, version=3)).error_code == INVALID_PRODUCER_EPOCH.code
        assert (await old.ask_init(named=True, version=4)).error_code == PRODUCER_FENCED.code
        assert [error for error, _ in await old.send("orders", b"late")] == [INVALID_PRODUCER_EPOCH.code]
        assert await read_committed(client, "orders") == []

    walk(steps, **FEW)


def test_whoever_has_another_producer_id_or_ends_what_was_not_begun_is_refused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await coordinator_of(client, "copier")
        producer, stranger = Producer(client, classic=True), Producer(client, classic=True)
        await producer.init()
        stranger.id, stranger.epoch = producer.id + 1, producer.epoch
        assert await stranger.add("orders", 0) == [INVALID_PRODUCER_ID_MAPPING.code]
        assert await stranger.end(commit=False) == INVALID_PRODUCER_ID_MAPPING.code
        assert await producer.end(commit=True) == INVALID_TXN_STATE.code
        assert await Producer(client, "unheard of", classic=True).end(commit=True) == INVALID_PRODUCER_ID_MAPPING.code
        assert (await producer.described()).transaction_state == "Empty"

    walk(steps, **FEW)


def test_a_topic_that_goes_takes_its_part_of_the_transaction_with_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.create("gone")
        await coordinator_of(client, "copier")
        producer = Producer(client)
        await producer.init()
        await producer.send("orders", b"kept")
        await producer.send("gone", b"lost")
        await client.delete("gone")
        assert await producer.end(commit=True) == 0
        await producer.settled()
        assert (await producer.described()).transaction_state == "CompleteCommit"
        assert await read_committed(client, "orders") == [b"kept"]

    walk(steps, **FEW)


# -- looking at them


def test_transactions_are_described_and_listed() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await coordinator_of(client, "copier")
        producers = {name: Producer(client, name) for name in ("shop-1", "shop-2", "copier")}
        for producer in producers.values():
            await producer.init()
        await producers["shop-1"].send("orders", b"x")

        async def listed(version: int = 2, **said: Any) -> set[tuple[str, str]]:
            reply = await client.ask(ListTransactionsRequest(**said), version)
            assert reply.error_code == 0
            return {(each.transactional_id, each.transaction_state) for each in reply.transaction_states}

        everybody = {("shop-1", "Ongoing"), ("shop-2", "Empty"), ("copier", "Empty")}
        for version in range(3):
            assert await listed(version) == everybody
            assert await listed(version, state_filters=["Ongoing"]) == {("shop-1", "Ongoing")}
            mine = producers["copier"].id
            assert await listed(version, producer_id_filters=[mine]) == {("copier", "Empty")}
        assert await listed(1, duration_filter=60_000) == {("shop-2", "Empty"), ("copier", "Empty")}
        assert await listed(transactional_id_pattern="shop-.*") == everybody - {("copier", "Empty")}
        assert await listed(transactional_id_pattern="shop") == set(), "the whole id has to match"
        assert await listed(transactional_id_pattern="") == everybody
        reply = await client.ask(ListTransactionsRequest(state_filters=["Ongoing", "Wandering"]), 2)
        assert (reply.unknown_state_filters, len(reply.transaction_states)) == (["Wandering"], 1)
        reply = await client.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert reply.error_code == INVALID_REGULAR_EXPRESSION.code
        states = (
            await client.ask(DescribeTransactionsRequest(transactional_ids=["shop-1", "nobody", ""]), 0)
        ).transaction_states
        assert [(each.transactional_id, each.error_code) for each in states[:2]] == [
            ("shop-1", 0),
            ("nobody", TRANSACTIONAL_ID_NOT_FOUND.code),
        ]
        assert states[2].error_code == INVALID_REQUEST.code
        shop = states[0]
        assert (shop.producer_id, shop.producer_epoch) == (producers["shop-1"].id, 0)
        assert shop.transaction_timeout_ms == 60_000
        assert [(topic.topic, topic.partitions) for topic in shop.topics] == [("orders", [0])]

    walk(steps, **FEW)


def test_of_transactions_one_is_told_what_one_may_describe() -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.create("secret")
        await coordinator_of(client, "copier")
        for name in ("mine", "theirs"):
            producer = Producer(client, name)
            await producer.init()
            await producer.send("orders", b"x")
            await producer.send("secret", b"x")
        gate.shut("DESCRIBE transactional_id:mine", "DESCRIBE topic:orders")
        reply = await client.ask(ListTransactionsRequest(), 2)
        assert [each.transactional_id for each in reply.transaction_states] == ["mine"]
        mine, theirs = (
            await client.ask(DescribeTransactionsRequest(transactional_ids=["mine", "theirs"]), 0)
        ).transaction_states
        assert (mine.error_code, [topic.topic for topic in mine.topics]) == (0, ["orders"])
        assert (theirs.error_code, theirs.topics) == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code, [])
        assert gate.offences == ["DESCRIBE transactional_id:theirs"]

    walk(steps, authorizer=gate, **FEW)


def test_finding_the_coordinator_and_an_id_take_their_own_rights() -> None:
    gate = Grants()

    async def steps(machine: Machine, client: Client) -> None:
        denied = TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code
        gate.shut("DESCRIBE transactional_id:theirs", "WRITE topic:orders")
        assert await coordinator_of(client, "mine") == -denied
        producer = Producer(client, "mine")
        assert await producer.init() == denied
        gate.shut("DESCRIBE transactional_id:mine", "WRITE transactional_id:mine")
        assert await coordinator_of(client, "mine") >= 0
        assert await producer.init() == 0

    walk(steps, authorizer=gate, **FEW)


def test_clients_do_not_write_into_the_state_topic() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator_of(client, "copier")
        written = await client.produce(TRANSACTIONS_TOPIC, b"x", version=ProduceRequest.__schema__.versions.last - 1)
        assert written.error_code == 17

    walk(steps, **FEW)


# -- what lasts


def test_transactions_outlast_their_node() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await coordinator_of(client, "copier")
        producer = Producer(client)
        await producer.init()
        await producer.send("orders", b"first")
        await producer.end(commit=True)
        await producer.settled()
        await producer.send("orders", b"second")
        await machine.stop()
        await machine.start()
        producer.client = producer.coordinator = client = await machine.dial()
        assert await read_committed(client, "orders") == [b"first"]
        assert (await producer.described()).transaction_state == "Ongoing"
        assert await producer.end(commit=True) == 0
        await producer.settled()
        assert await read_committed(client, "orders") == [b"first", b"second"]

    walk(steps, **FEW)


def test_markers_that_a_node_did_not_get_to_write_are_written_by_its_next_life() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await coordinator_of(client, "copier")
        producer = Producer(client)
        await producer.init()
        await producer.send("orders", b"first")
        machine.node.broker.transactions.kind.carry_out = lambda *_: None  # type: ignore[method-assign]
        assert await producer.end(commit=True) == 0
        assert (await producer.described()).transaction_state == "PrepareCommit"
        assert (await producer.ask_init()).error_code == CONCURRENT_TRANSACTIONS.code
        await machine.stop()
        await machine.start()
        producer.client = producer.coordinator = client = await machine.dial()
        await producer.settled()
        assert await read_committed(client, "orders") == [b"first"]

    walk(steps, **FEW)
