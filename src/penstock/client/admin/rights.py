"""What whoever asks may do, as the brokers tell that very client (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.client.admin.session import Session, check
from penstock.model.security import Operation
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.protocol.messages.metadata import MetadataRequest

NOBODY_ASKED = -(1 << 31)
"""What a broker says that was not asked for operations, or does not know the question."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Operations in lower-case words. A topic that may not be described, or is not there, allows none."""

    cluster: frozenset[str] = frozenset()
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def on_topic(self, name: str) -> frozenset[str]:
        return self.topics.get(name, frozenset())


async def rights(session: Session, topics: Iterable[str]) -> Rights:
    names = sorted(set(topics))

    async def on_cluster() -> frozenset[str]:
        reply = await session.any(DescribeClusterRequest(include_cluster_authorized_operations=True))
        check(reply.error_code, reply.error_message, "the cluster")
        return _words(reply.cluster_authorized_operations)

    async def on_topics() -> dict[str, frozenset[str]]:
        reply = await session.any(
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            )
        )
        found = reply.topics
        return {each.name or "": _words(each.topic_authorized_operations) for each in found if not each.error_code}

    cluster = await session.patient(on_cluster)
    return Rights(cluster, await session.patient(on_topics) if names else {})


def _words(bits: int) -> frozenset[str]:
    if bits == NOBODY_ASKED:
        return frozenset()
    return frozenset(each.name.lower() for each in Operation if bits >> each & 1)
