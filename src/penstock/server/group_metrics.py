"""What the group coordinator of a node has to tell at scrape. Lag is not among it: that takes both ends of a partition.

Groups by state are named as Strimzi's rules name Kafka's, members as kafka_exporter does, the rest after Kafka's
`group-coordinator-metrics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.server.metrics import COUNTER, GAUGE, Sample

if TYPE_CHECKING:
    from penstock.server.drivers.coordinator_driver import CoordinatorDriver

_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR: Final = "kafka_server_group_coordinator_metrics_"
_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", "Empty", "Dead")


def group_samples(groups: CoordinatorDriver) -> Iterator[Sample]:
    """Groups, members, offsets and shards that live here."""
    states: Counter[str] = Counter()
    kinds: Counter[str] = Counter({"classic": 0, "consumer": 0})
    shards: Counter[str] = Counter({"active": 0, "loading": 0, "failed": 0})
    offsets, load_ms = 0, 0.0
    for home in list(groups):
        shards["loading" if home.is_loading else "failed" if home.failed else "active"] += 1
        load_ms = max(load_ms, home.load_ms)
        if home.shard is None:
            continue
        table = home.shard.table
        offsets += sum(map(len, table.offsets.values()))
        for group in list(table.groups.values()):
            states[group.state_name()] += 1
            kinds[group.kind] += 1
            members = len(group.members)  # type: ignore[attr-defined]  # both kinds have them, of a class of their own
            labels = {"consumergroup": group.id}
            yield Sample("kafka_consumergroup_members", labels, members, GAUGE, "Members of the group")
    yield Sample(_MANAGER + "numgroups", {}, sum(states.values()), GAUGE, "Groups coordinated here")
    for state in _STATES:
        yield Sample(_MANAGER + f"numgroups{state.lower()}", {}, states[state], GAUGE, f"Groups that are {state}")
    yield Sample(_MANAGER + "numoffsets", {}, offsets, GAUGE, "Committed offsets held here")
    for kind, count in sorted(kinds.items()):
        yield Sample(_COORDINATOR + "group_count", {"protocol": kind}, count, GAUGE, "Groups by protocol")
    for state, count in sorted(shards.items()):
        yield Sample(_COORDINATOR + "num_partitions", {"state": state}, count, GAUGE, "Shards by state")
    yield Sample(_COORDINATOR + "partition_load_time_max", {}, load_ms, GAUGE, "Longest load of a shard in ms")
    written = groups.written
    commits, rebalances = _COORDINATOR + "offset_commit_count_total", _COORDINATOR + "group_rebalance_count_total"
    yield Sample(commits, {}, written["OffsetCommitKey"], COUNTER, "Offsets committed")
    classic, consumer = written["GroupMetadataKey"], written["ConsumerGroupMetadataKey"]
    yield Sample(rebalances, {"protocol": "classic"}, classic, COUNTER, "Generations and epochs begun")
    yield Sample(rebalances, {"protocol": "consumer"}, consumer, COUNTER, "Generations and epochs begun")
