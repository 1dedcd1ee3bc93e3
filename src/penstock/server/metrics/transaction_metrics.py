"""What the coordinator of transactions on a node has to tell at scrape, and whoever asks coordinators about partitions.

Named after Kafka's MBeans (`TransactionMarkerChannelManager`, `transaction-coordinator-metrics`,
`AddPartitionsToTxnManager`); what Kafka has no name for is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.server.metrics.page import LOOKS_A_PAUSE, PAUSE, Sample, Telling
from penstock.transport.prometheus import COUNTER, GAUGE, SUMMARY

if TYPE_CHECKING:
    from penstock.server.coordinating.transactions import Transactions
    from penstock.server.coordinating.verifying import TransactionVerifier

_MARKERS: Final = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
_COORDINATOR: Final = "kafka_server_transaction_coordinator_metrics_"
_STATES: Final = ("empty", "ongoing", "prepare_commit", "prepare_abort", "complete_commit", "complete_abort")
_VERIFIER: Final = "kafka_server_addpartitionstotxnmanager_"


def transaction_samples(transactions: Transactions) -> Iterator[Telling]:
    """Shards, transactions by state, and markers that are not written yet."""
    shards: Counter[str] = Counter({"active": 0, "loading": 0, "failed": 0})
    states: Counter[str] = Counter(dict.fromkeys(_STATES, 0))
    load_ms: list[float] = []
    count = 0
    for home in list(transactions):
        shards["loading" if home.is_loading else "failed" if home.failed else "active"] += 1
        load_ms.append(home.load_ms)
        if home.shard is None:
            continue
        for transaction in list(home.shard.table.transactions.values()):
            states[transaction.state.status.name.lower()] += 1
            count += 1
            if not count % LOOKS_A_PAUSE:
                yield PAUSE
    for state, number in sorted(shards.items()):
        yield Sample(_COORDINATOR + "num_partitions", {"state": state}, number, GAUGE, "Shards by state")
    for state, number in sorted(states.items()):
        yield Sample(_COORDINATOR + "transaction_count", {"state": state}, number, GAUGE, "Transactional ids by state")
    longest, mean = max(load_ms, default=0.0), sum(load_ms) / len(load_ms) if load_ms else 0.0
    yield Sample(_COORDINATOR + "partition_load_time_max", {}, longest, GAUGE, "Longest load of a shard in ms")
    yield Sample(_COORDINATOR + "partition_load_time_avg", {}, mean, GAUGE, "Mean load of a shard in ms")
    markers = transactions.markers
    nowhere, untold, unmarked = (
        (0, 0, 0) if markers is None else (markers.without_destination, markers.untold, markers.unmarked)
    )
    yield Sample(_MARKERS + "unknowndestinationqueuesize", {}, nowhere, GAUGE, "Markers whose partition nobody leads")
    yield Sample(_MARKERS + "logappendretryqueuesize", {}, untold, GAUGE, "Ended transactions not yet written as such")
    yield Sample("penstock_transaction_markers_unwritten", {}, unmarked, GAUGE, "Markers decided and not yet written")


def verification_samples(verifier: TransactionVerifier | None) -> Iterator[Telling]:
    """What leaders here have asked coordinators."""
    asked, failed, took_ms, longest_ms = (
        (0, 0, 0.0, 0.0)
        if verifier is None
        else (verifier.asked, verifier.failed, verifier.asked_ms, verifier.asked_ms_max)
    )
    took = "Milliseconds that coordinators took to answer about partitions of transactions"
    yield Sample(_VERIFIER + "verificationtimems_count", {}, asked, SUMMARY, took)
    yield Sample(_VERIFIER + "verificationtimems_sum", {}, took_ms, SUMMARY, took)
    yield Sample(_VERIFIER + "verificationtimems_max", {}, longest_ms, GAUGE, "The longest of these times in ms")
    yield Sample(_VERIFIER + "verificationfailurerate_total", {}, failed, COUNTER, "Partitions that were not verified")
