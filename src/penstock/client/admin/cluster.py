"""The cluster itself: brokers, who controls it, its metadata quorum, its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.client.admin.session import Session, check, unsupported
from penstock.client.errors import ClientError, NotReachable, TimedOutWaiting
from penstock.model.errors import REQUEST_TIMED_OUT
from penstock.model.ids import METADATA_TOPIC, uuid_text
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from penstock.protocol.messages.update_features import UpdateFeaturesRequest

NO_CONTROLLER = -1
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker; a fenced one is known but not (or no longer) alive."""

    id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """`controller` is whom the quorum's leader is, where brokers tell it, else whom a broker named; -1 for nobody."""

    cluster_id: str
    controller: int
    controller_epoch: int
    brokers: list[BrokerInfo]


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One node of the metadata quorum; `lag` counts records behind the leader, times are in ms or -1."""

    id: int
    directory_id: str
    log_end: int
    lag: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """The metadata quorum: who leads it since which epoch, what is committed, and how far its nodes are."""

    leader: int
    epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    endpoints: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeatureInfo:
    """A feature: the levels that this broker knows, and the one the cluster has settled on (None for none)."""

    name: str
    lowest: int
    highest: int
    finalized: int | None


async def describe_cluster(session: Session, *, fenced: bool) -> ClusterInfo:
    async def call() -> ClusterInfo:
        reply = await session.any(DescribeClusterRequest(include_fenced_brokers=fenced))
        check(reply.error_code, reply.error_message, "the cluster")
        brokers = [BrokerInfo(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in reply.brokers]
        return ClusterInfo(reply.cluster_id, reply.controller_id, -1, sorted(brokers, key=lambda broker: broker.id))

    info = await session.patient(call)
    try:
        quorum = await describe_quorum(session)
    except ClientError as failure:
        if unsupported(failure):
            return info
        if nobody_leads(failure):
            return ClusterInfo(info.cluster_id, NO_CONTROLLER, -1, info.brokers)
        raise
    return ClusterInfo(info.cluster_id, quorum.leader, quorum.epoch, info.brokers)


def nobody_leads(failure: ClientError) -> bool:
    """Whether brokers answer, but nobody who leads the quorum: a majority of the controllers may be away."""
    return isinstance(failure, (NotReachable, TimedOutWaiting)) or failure.error is REQUEST_TIMED_OUT


async def describe_quorum(session: Session) -> QuorumInfo:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])

    async def call() -> QuorumInfo:
        reply = await session.any(DescribeQuorumRequest(topics=[topic]))
        check(reply.error_code, reply.error_message, "the quorum")
        found = reply.topics[0].partitions[0]
        check(found.error_code, found.error_message, "the quorum")
        leader_end = max((v.log_end_offset for v in found.current_voters if v.replica_id == found.leader_id), default=0)
        return QuorumInfo(
            found.leader_id,
            found.leader_epoch,
            found.high_watermark,
            [_replica(replica, leader_end) for replica in found.current_voters],
            [_replica(replica, leader_end) for replica in found.observers],
            {node.node_id: [f"{at.name}://{at.host}:{at.port}" for at in node.listeners] for node in reply.nodes},
        )

    return await session.patient(call)


async def api_versions(session: Session, node_id: int) -> dict[str, tuple[int, int]]:
    """The APIs that a broker serves, with their lowest and highest versions."""
    from penstock.protocol.registry import APIS

    link = await session.view.link(node_id)
    return {APIS[key].name if key in APIS else str(key): known for key, known in sorted(link.versions.items())}


async def describe_features(session: Session, node_id: int | None) -> list[FeatureInfo]:
    """The features of a broker (of any, for None)."""

    async def ask(chosen: int) -> list[FeatureInfo]:
        reply = await session.broker(chosen, _api_versions_request(), newest=_API_VERSIONS_NEWEST)
        check(reply.error_code, None, f"broker {chosen}")
        return _features(reply)

    async def call() -> list[FeatureInfo]:
        if node_id is not None:
            return await ask(node_id)
        brokers = sorted(broker.node_id for broker in (await session.metadata([])).brokers)
        for chosen in brokers[:-1]:
            try:
                return await ask(chosen)
            except NotReachable:
                continue  # one that is down and not yet missed
        return await ask(brokers[-1])

    return await session.patient(call)


async def update_features(
    session: Session, levels: Mapping[str, int], *, downgrade: str | None, validate_only: bool
) -> None:
    """Settles on other levels; `downgrade` is None, "safe" or "unsafe"."""
    kinds = {None: UPGRADE, "safe": SAFE_DOWNGRADE, "unsafe": UNSAFE_DOWNGRADE}
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kinds[downgrade])
        for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(
        timeout_ms=session.request_timeout_ms, feature_updates=updates, validate_only=validate_only
    )

    async def call() -> None:
        reply = await session.any(request)
        check(reply.error_code, reply.error_message, "the change of features")
        for result in reply.results:
            check(result.error_code, result.error_message, f"feature {result.feature!r}")

    await session.patient(call)


def _replica(found: DescribeQuorumResponse.ReplicaState, leader_end: int) -> QuorumReplica:
    return QuorumReplica(
        found.replica_id,
        uuid_text(found.replica_directory_id),
        found.log_end_offset,
        max(leader_end - found.log_end_offset, 0),
        found.last_fetch_timestamp,
        found.last_caught_up_timestamp,
    )


_API_VERSIONS_NEWEST = 4


def _api_versions_request() -> ApiVersionsRequest:
    from penstock.model.version import VERSION

    return ApiVersionsRequest(client_software_name="penstock", client_software_version=VERSION)


def _features(reply: ApiVersionsResponse) -> list[FeatureInfo]:
    finalized = {feature.name: feature.max_version_level for feature in reply.finalized_features}
    return [
        FeatureInfo(feature.name, feature.min_version, feature.max_version, finalized.get(feature.name))
        for feature in sorted(reply.supported_features, key=lambda feature: feature.name)
    ]
