"""What makes a cluster unhealthy, as sentences: pure, from what an Admin was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.admin import Admin, ClusterInfo, LogDirInfo, TopicInfo

_SHOWN = 5
TIMEOUT_MS = 5_000
"""A broker that says nothing for so long is not waited for: that is an answer too."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cluster is not healthy; `kind` is for programs, `items` are the brokers, partitions or directories."""

    kind: str
    what: str
    items: list[str]


def reasons(
    cluster: ClusterInfo,
    topics: Sequence[TopicInfo],
    min_isr: Mapping[str, int],
    log_dirs: Mapping[int, Sequence[LogDirInfo]],
) -> list[Reason]:
    alive = {broker.id for broker in cluster.brokers if not broker.fenced}
    placed = {node for topic in topics for partition in topic.partitions for node in partition.replicas}
    down = sorted(placed - alive | {broker.id for broker in cluster.brokers if broker.fenced})
    leaderless, behind, too_few = [], [], []
    for topic in topics:
        for partition in topic.partitions:
            name = f"{topic.name}-{partition.partition}"
            if partition.leader < 0:
                leaderless.append(name)
            if len(partition.isr) < len(partition.replicas):
                behind.append(name)
            if len(partition.isr) < min_isr.get(topic.name, 1):
                too_few.append(name)
    offline = [
        f"{found.path} of broker {node}" for node, dirs in sorted(log_dirs.items()) for found in dirs if found.error
    ]
    found = [
        Reason(
            "no_controller", "no controller leads the metadata quorum", [] if cluster.controller >= 0 else ["quorum"]
        ),
        Reason("brokers_down", "brokers are down", [f"broker {node}" for node in down]),
        Reason("leaderless", "partitions have no leader, so nobody can write or read them", leaderless),
        Reason("under_min_isr", "partitions have too few in-sync replicas to take acks=all writes", too_few),
        Reason("under_replicated", "partitions have replicas that are not in sync", behind),
        Reason("offline_dirs", "log directories are offline", offline),
    ]
    return [reason for reason in found if reason.items]


def sentence(reason: Reason) -> str:
    shown = ", ".join(reason.items[:_SHOWN])
    more = f" and {len(reason.items) - _SHOWN} more" if len(reason.items) > _SHOWN else ""
    return f"{reason.what}: {shown}{more}"


async def look(admin: Admin) -> tuple[ClusterInfo, list[Reason]]:
    """Asks everything that health depends on."""
    from penstock.client.admin.configs import ConfigResource

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
    return cluster, reasons(cluster, topics, min_isr, log_dirs.done)
