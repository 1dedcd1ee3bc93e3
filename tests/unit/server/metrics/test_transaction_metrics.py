"""What the metrics page tells of transactions, of markers that wait, and of questions to coordinators."""

from __future__ import annotations

from penstock.server.metrics.page import Metrics
from penstock.server.metrics.transaction_metrics import transaction_samples, verification_samples
from tests.walks.data_plane import Client, Machine, walk
from tests.walks.prometheus_text import samples
from tests.walks.transactional_ids import Producer, coordinator_of

COORDINATOR = "kafka_server_transaction_coordinator_metrics_"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
VERIFIER = "kafka_server_addpartitionstotxnmanager_"


def told(machine: Machine) -> dict[tuple[str, str], float]:
    metrics, transactions = Metrics(), machine.node.broker.transactions
    metrics.register("transactions", lambda: transaction_samples(transactions))
    metrics.register("verification", lambda: verification_samples(transactions.verifier))
    return {(each.name, each.labels.get("state", "")): each.value for each in samples(metrics.page())}


def test_transactions_are_counted_by_how_they_stand() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        before = told(machine)
        assert before[COORDINATOR + "transaction_count", "ongoing"] == 0
        assert before[COORDINATOR + "num_partitions", "active"] == 0
        assert before[VERIFIER + "verificationtimems_count", ""] == 0
        await client.create("orders", 2)
        await coordinator_of(client, "copier")
        for name, ends in (("a", True), ("b", False), ("c", False)):
            producer = Producer(client, name)
            await producer.init()
            await producer.send("orders", b"x", partitions=(0, 1))
            if ends:
                await producer.end(commit=True)
                await producer.settled()
        stranger = Producer(client, "nobody")
        stranger.id, stranger.epoch = 5, 0
        await stranger.send("orders", b"x")
        after = told(machine)
        assert after[COORDINATOR + "transaction_count", "ongoing"] == 2
        assert after[COORDINATOR + "transaction_count", "complete_commit"] == 1
        assert after[COORDINATOR + "num_partitions", "active"] == 3
        assert after["penstock_transaction_markers_unwritten", ""] == 0
        assert after[MARKERS + "unknowndestinationqueuesize", ""] == 0
        assert after[MARKERS + "logappendretryqueuesize", ""] == 0
        assert after[VERIFIER + "verificationtimems_count", ""] == 4
        assert after[VERIFIER + "verificationfailurerate_total", ""] == 1

    walk(steps, transaction_state_log_num_partitions="3")


def test_markers_without_a_leader_are_told_of() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await coordinator_of(client, "copier")
        producer = Producer(client)
        await producer.init()
        await producer.send("orders", b"x")
        transactions = machine.node.broker.transactions
        image = transactions.image()
        topic = image.topic("orders")
        assert topic is not None
        topic.partitions[0] = topic.partitions[0]._replace(leader=-1)
        await producer.end(commit=True)
        waiting = told(machine)
        assert waiting[MARKERS + "unknowndestinationqueuesize", ""] == 1
        assert waiting["penstock_transaction_markers_unwritten", ""] == 1
        assert waiting[COORDINATOR + "transaction_count", "prepare_commit"] == 1

    walk(steps, transaction_state_log_num_partitions="1")
