"""What the group coordinator of a node has to tell at scrape: groups, members, offsets, and how far they are behind.

Groups by state are named as Strimzi's rules name Kafka's, members, offsets and lags as kafka_exporter does, the rest
after Kafka's `group-coordinator-metrics`. A group is told of by its coordinator alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.server.metrics.node_metrics import left_out
from penstock.server.metrics.page import LOOKS_A_PAUSE, PAUSE, SERIES_MAX, Row, Sample, Telling, Told
from penstock.transport.prometheus import COUNTER, GAUGE

if TYPE_CHECKING:
    from penstock.coordinators.groups.shard import GroupShard
    from penstock.coordinators.groups.table import CommittedOffset, OffsetKey
    from penstock.server.coordinating.runtime import Runtime
    from penstock.server.partitions.log_ends import LogEnds

_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR: Final = "kafka_server_group_coordinator_metrics_"
_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", "Empty", "Dead")

_OFFSET: Final = (Told("kafka_consumergroup_current_offset", GAUGE, "Committed offset"),)
_OFFSET_AND_LAG: Final = (*_OFFSET, Told("kafka_consumergroup_lag", GAUGE, "Records from it to the high watermark"))
_SUM: Final = (Told("kafka_consumergroup_current_offset_sum", GAUGE, "Sum of committed offsets in a topic"),)
_SUM_AND_LAG: Final = (*_SUM, Told("kafka_consumergroup_lag_sum", GAUGE, "Sum of lags in a topic"))


def _committed(groups: Runtime[GroupShard]) -> Iterator[tuple[str, list[tuple[OffsetKey, CommittedOffset]]]]:
    """The offsets of each group here, without those of topics that are no more: these are about to go."""
    for home in list(groups):
        if home.shard is not None:
            table = home.shard.table
            for group_id, held in list(table.offsets.items()):
                yield (
                    group_id,
                    [
                        (key, committed)
                        for key, committed in held.items()
                        if not table.is_of_a_former_topic(key[0], committed)
                    ],
                )


async def ask_ends(groups: Runtime[GroupShard], ends: LogEnds) -> None:
    """Asks other leaders where their logs end, of the partitions whose lags are about to be told."""
    wanted: dict[OffsetKey, None] = {}
    count = looked_at = 0
    for _, held in _committed(groups):
        for key, _ in held[: SERIES_MAX - count]:
            wanted[key] = None
        count, looked_at = count + len(held), looked_at + len(held)
        if count >= SERIES_MAX:
            break
        if looked_at >= LOOKS_A_PAUSE:
            looked_at = 0
            await asyncio.sleep(0)
    await ends.ask(wanted)


class _Sums:
    """What a group has in one topic. The lag is not known when that of one partition is not."""

    __slots__ = ("lag", "offset")

    def __init__(self) -> None:
        self.offset = 0
        self.lag: int | None = 0

    def add(self, offset: int, lag: int | None) -> None:
        self.offset += offset
        self.lag = None if lag is None or self.lag is None else self.lag + lag


def lag_samples(groups: Runtime[GroupShard], ends: LogEnds) -> Iterator[Telling]:
    """Committed offsets and lags. Where the end of a partition is not known there is no lag, and it is counted."""
    count = unknown = 0
    for group_id, held in _committed(groups):
        told = held[: max(0, SERIES_MAX - count)]
        count += len(held)
        sums: dict[str, _Sums] = {}
        for (topic, partition), committed in told:
            labels = {"consumergroup": group_id, "topic": topic, "partition": str(partition)}
            offset, end = committed.offset, ends.end_of(topic, partition)
            lag = None if end is None else max(0, end - offset)
            sums.setdefault(topic, _Sums()).add(offset, lag)
            unknown += lag is None
            yield Row(labels, _OFFSET, (offset,)) if lag is None else Row(labels, _OFFSET_AND_LAG, (offset, lag))
        for topic, total in sums.items():
            labels = {"consumergroup": group_id, "topic": topic}
            yield (
                Row(labels, _SUM, (total.offset,))
                if total.lag is None
                else Row(labels, _SUM_AND_LAG, (total.offset, total.lag))
            )
        if not told:
            yield PAUSE
    yield left_out("group offsets", max(0, count - SERIES_MAX))
    yield left_out("group lags", unknown)


def group_samples(groups: Runtime[GroupShard]) -> Iterator[Telling]:
    """Groups, members and shards that live here."""
    states: Counter[str] = Counter()
    kinds: Counter[str] = Counter({"classic": 0, "consumer": 0})
    shards: Counter[str] = Counter({"active": 0, "loading": 0, "failed": 0})
    offsets, load_ms, count = 0, 0.0, 0
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
            count += 1
            members = len(group.members)  # type: ignore[attr-defined]  # both kinds have them, of a class of their own
            if count <= SERIES_MAX:
                labels = {"consumergroup": group.id}
                yield Sample("kafka_consumergroup_members", labels, members, GAUGE, "Members of the group")
            elif not count % LOOKS_A_PAUSE:
                yield PAUSE
    yield left_out("groups", max(0, count - SERIES_MAX))
    yield Sample(_MANAGER + "numgroups", {}, sum(states.values()), GAUGE, "Groups coordinated here")
    for state in _STATES:
        yield Sample(_MANAGER + f"numgroups{state.lower()}", {}, states[state], GAUGE, f"Groups that are {state}")
    yield Sample(_MANAGER + "numoffsets", {}, offsets, GAUGE, "Committed offsets held here")
    for kind, number in sorted(kinds.items()):
        yield Sample(_COORDINATOR + "group_count", {"protocol": kind}, number, GAUGE, "Groups by protocol")
    for state, number in sorted(shards.items()):
        yield Sample(_COORDINATOR + "num_partitions", {"state": state}, number, GAUGE, "Shards by state")
    yield Sample(_COORDINATOR + "partition_load_time_max", {}, load_ms, GAUGE, "Longest load of a shard in ms")
    written = groups.written
    commits, rebalances = _COORDINATOR + "offset_commit_count_total", _COORDINATOR + "group_rebalance_count_total"
    yield Sample(commits, {}, written["OffsetCommitKey"], COUNTER, "Offsets committed")
    classic, consumer = written["GroupMetadataKey"], written["ConsumerGroupMetadataKey"]
    yield Sample(rebalances, {"protocol": "classic"}, classic, COUNTER, "Generations and epochs begun")
    yield Sample(rebalances, {"protocol": "consumer"}, consumer, COUNTER, "Generations and epochs begun")
