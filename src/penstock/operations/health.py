"""What makes a cluster unhealthy, as sentences: pure, from what an Admin was told."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from penstock.operations import held_back

if TYPE_CHECKING:
    from penstock.client.admin import (
        Admin,
        ClusterInfo,
        LogDirInfo,
        OpenTransaction,
        QuorumInfo,
        QuorumReplica,
        TopicInfo,
    )
    from penstock.client.admin.copying import Behind, Damage
    from penstock.model.ids import TopicPartition

_SHOWN = 5
_SUSPECTS_MAX = 50
"""Two requests are made for each replica that is not in sync."""
TIMEOUT_MS = 5_000
"""A broker that says nothing for so long is not waited for: that is an answer too."""
FREE_LOW = 0.10
FREE_LOW_BYTES = 50 << 30
"""A disk is nearly full when less than a tenth of it is free and less than this: a tenth of a large one is plenty."""
VOTER_SILENT_MS = 5_000
"""The controllers write a record every half second; a voter that has none of them for so long is down or cut off."""

_ATTEMPTS = {
    "no_controller": "look at `penstock cluster quorum`, and start controllers until a majority of them runs",
    "voters_behind": "start them or read their logs; one that is gone for good:"
    " `penstock cluster quorum remove-voter ID`",
    "voters_replaced": "take the lost directory's vote away, then give one to the new:"
    " `penstock cluster quorum remove-voter ID --directory-id LOST`, `penstock cluster quorum add-voter ID --at"
    " HOST:PORT --directory-id NEW`",
    "brokers_down": "start them and read their logs; one that is gone for good: `penstock cluster decommission ID`",
    "leaderless": "bring a broker back that has an in-sync replica; if it is lost with its records,"
    " `penstock cluster partitions elect --unclean` goes on without them",
    "under_min_isr": "bring replicas back; `penstock cluster partitions list --only under-replicated` shows which",
    "under_replicated": "see which brokers lag or are down: `penstock cluster brokers`",
    "damaged": "if another replica is in sync: stop the broker that has the damage, delete the partition's directory"
    " there and start it, it copies from the others; if none is: `penstock topic trim` to behind the damage",
    "offline_dirs": "look at the disk and the broker's log, then restart it",
    "late_transactions": "`penstock txn find-hanging` names those that no coordinator knows, `penstock txn abort` ends"
    " one; for the others `penstock txn describe ID` and `penstock txn fence ID`",
    "disks_low": "lower retention.ms or retention.bytes of large topics, trim them, or add space",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cluster is not healthy; `kind` is for programs, `items` are the brokers, partitions or directories."""

    kind: str
    what: str
    items: list[str]
    attempt: str = ""
    """What to try."""


def reasons(
    cluster: ClusterInfo,
    topics: Sequence[TopicInfo],
    min_isr: Mapping[str, int],
    log_dirs: Mapping[int, Sequence[LogDirInfo]],
    quorum: QuorumInfo | None = None,
    silent: Iterable[int] = (),
    damage: Iterable[Damage] = (),
    held_by: Iterable[OpenTransaction] = (),
    now_ms: int = 0,
) -> list[Reason]:
    """`silent` are brokers that nobody reaches, whatever the cluster thinks of them; `held_by` what is open."""
    alive = {broker.id for broker in cluster.brokers if not broker.fenced}
    placed = {node for topic in topics for partition in topic.partitions for node in partition.replicas}
    down = sorted(placed - alive | {broker.id for broker in cluster.brokers if broker.fenced} | set(silent))
    leaderless, behind, too_few = [], [], []
    for topic in topics:
        for partition in topic.partitions:
            name = f"{topic.name}-{partition.partition}"
            if partition.leader < 0:
                leaderless.append(name)
            if len(partition.isr) < len(partition.replicas):
                behind.append(name)
            # No more than there are replicas can be in sync, so brokers do not ask for more either.
            if len(partition.isr) < min(min_isr.get(topic.name, 1), len(partition.replicas)):
                too_few.append(name)
    offline = [
        f"{found.path} of broker {node}" for node, dirs in sorted(log_dirs.items()) for found in dirs if found.error
    ]
    low = [
        f"{found.path} of broker {node} ({free_percent(found)} % free)"
        for node, dirs in sorted(log_dirs.items())
        for found in dirs
        if nearly_full(found)
    ]
    found = [
        ("no_controller", "no controller leads the metadata quorum", [] if cluster.controller >= 0 else ["quorum"]),
        ("voters_behind", "controllers do not follow the metadata quorum", silent_voters(quorum)),
        (
            "voters_replaced",
            "controllers run with new directories, and votes are kept for those that they lost",
            replaced_voters(quorum),
        ),
        ("brokers_down", "brokers are down", [f"broker {node}" for node in down]),
        ("leaderless", "partitions have no leader, so nobody can write or read them", leaderless),
        ("under_min_isr", "partitions have too few in-sync replicas to take acks=all writes", too_few),
        ("under_replicated", "partitions have replicas that are not in sync", behind),
        (
            "damaged",
            "followers cannot copy damaged batches of their leaders",
            sorted({_place(each) for each in damage}),
        ),
        (
            "late_transactions",
            "transactions that should have ended hold back readers of committed records",
            [held_back.words(each, now_ms) for each in held_by if held_back.late(each, now_ms)],
        ),
        ("offline_dirs", "log directories are offline", offline),
        ("disks_low", "disks are nearly full; a full one takes its replicas offline", low),
    ]
    return [Reason(kind, what, items, _ATTEMPTS[kind]) for kind, what, items in found if items]


def nearly_full(directory: LogDirInfo) -> bool:
    """Brokers older than Kafka 3.3 do not tell the size of a disk, and an offline one has none."""
    if directory.error is not None or directory.total_bytes <= 0:
        return False
    return directory.usable_bytes < min(FREE_LOW * directory.total_bytes, FREE_LOW_BYTES)


def free_percent(directory: LogDirInfo) -> str:
    free = 100 * directory.usable_bytes / directory.total_bytes
    return f"{free:.1f}" if 0 < free < 1 else f"{free:.0f}"


def suspects(topics: Sequence[TopicInfo], alive: Collection[int]) -> list[Behind]:
    """Replicas that are not in sync although their broker and their leader are there; no more than can be asked."""
    from penstock.client.admin.copying import Behind
    from penstock.model.ids import TopicPartition

    behind = (
        Behind(TopicPartition(topic.name, partition.partition), partition.leader, replica)
        for topic in topics
        for partition in topic.partitions
        for replica in partition.replicas
        if replica not in partition.isr and {replica, partition.leader} <= set(alive)
    )
    return list(islice(behind, _SUSPECTS_MAX))


def _place(damage: Damage) -> str:
    topic, partition = damage.behind.partition
    return f"{topic}-{partition} at offset {damage.offset} of broker {damage.behind.leader} ({damage.why})"


def silent_voters(quorum: QuorumInfo | None) -> list[str]:
    """Those that have not caught up for long, measured by the leader's clock, and are not back with another disk."""
    if quorum is None:
        return []
    replaced = {lost.id for lost, _ in _replacements(quorum)}
    now_ms = max((voter.last_caught_up_ms for voter in quorum.voters), default=-1)
    return [
        f"node {voter.id}"
        for voter in quorum.voters
        if voter.id not in {quorum.leader, *replaced} and now_ms - voter.last_caught_up_ms > VOTER_SILENT_MS
    ]


def replaced_voters(quorum: QuorumInfo | None) -> list[str]:
    """Voters whose disk was made anew. It is seen as soon as the new one is heard of, before the old one is missed."""
    if quorum is None:
        return []
    return [
        f"node {lost.id} (lost {lost.directory_id}, new {found.directory_id})" for lost, found in _replacements(quorum)
    ]


def _replacements(quorum: QuorumInfo) -> list[tuple[QuorumReplica, QuorumReplica]]:
    """Each voter that was not heard of since the same node came as an observer, and that observer."""
    pairs = []
    for voter in quorum.voters:
        again = [
            each
            for each in quorum.observers
            if each.id == voter.id != quorum.leader and each.last_fetch_ms > voter.last_fetch_ms
        ]
        if again:
            pairs.append((voter, max(again, key=lambda each: each.last_fetch_ms)))
    return pairs


def sentence(reason: Reason) -> str:
    shown = ", ".join(reason.items[:_SHOWN])
    more = f" and {len(reason.items) - _SHOWN} more" if len(reason.items) > _SHOWN else ""
    return f"{reason.what}: {shown}{more}"


async def look(admin: Admin) -> tuple[ClusterInfo, list[Reason]]:
    """Asks everything that health depends on."""
    from penstock.client.admin.configs import ConfigResource
    from penstock.client.errors import NotReachable, TimedOutWaiting

    cluster = await admin.describe_cluster()
    topics = await admin.topics(internal=True)
    configs = await admin.describe_configs([ConfigResource.topic(topic.name) for topic in topics])
    min_isr = {
        resource.name: int(entries["min.insync.replicas"].value or 1)
        for resource, entries in configs.done.items()
        if "min.insync.replicas" in entries
    }
    alive = [broker.id for broker in cluster.brokers if not broker.fenced]
    log_dirs = await admin.describe_log_dirs(alive)
    silent = [node for node, why in log_dirs.failed.items() if isinstance(why, (NotReachable, TimedOutWaiting))]
    damage = await admin.find_damage(suspects(topics, set(alive) - set(silent)))
    held_by = await _held_by(admin, topics, set(alive) - set(silent))
    # Last, because nobody answers it while there is no leader.
    cluster, quorum = await _with_quorum(admin, cluster)
    now_ms = time.time_ns() // 1_000_000
    return cluster, reasons(cluster, topics, min_isr, log_dirs.done, quorum, silent, damage, held_by, now_ms)


async def _held_by(admin: Admin, topics: Sequence[TopicInfo], alive: Collection[int]) -> list[OpenTransaction]:
    """What holds readers of committed records back; nothing where that cannot be asked.

    Brokers may be too old to tell, we may not know, a coordinator may be moving: the rest of the answer is wanted.
    """
    from penstock.client.errors import ClientError

    try:
        return await held_back.holding_back(admin, led_by(topics, alive))
    except ClientError:
        return []


def led_by(topics: Sequence[TopicInfo], alive: Collection[int]) -> list[TopicPartition]:
    """The partitions whose leaders can be asked."""
    from penstock.model.ids import TopicPartition

    return [
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
        if partition.leader in alive
    ]


async def _with_quorum(admin: Admin, cluster: ClusterInfo) -> tuple[ClusterInfo, QuorumInfo | None]:
    """None where brokers do not tell, or nobody leads."""
    from penstock.client.admin.cluster import NO_CONTROLLER, nobody_leads
    from penstock.client.admin.session import unsupported
    from penstock.client.errors import ClientError

    if cluster.controller < 0:
        return cluster, None
    try:
        return cluster, await admin.describe_quorum()
    except ClientError as failure:
        if unsupported(failure):
            return cluster, None
        if nobody_leads(failure):
            return replace(cluster, controller=NO_CONTROLLER), None
        raise
