"""From (API key, version) to the handler that answers it. Handlers are imported at the first request of their key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from struct import Struct
from typing import Final

from penstock.protocol.codec import encode_into
from penstock.protocol.decoder import holds_records
from penstock.protocol.frame import encode_response_parts
from penstock.protocol.registry import APIS, Api
from penstock.protocol.wire import Message, Records, schema_of
from penstock.server.doors import Handler, PlainHandler
from penstock.server.reception.request_metrics import ApiMetrics

SERVED: Final = (
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "Metadata",
    "Produce",
    "Fetch",
    "ListOffsets",
    "OffsetForLeaderEpoch",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "ConsumerGroupHeartbeat",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetDelete",
    "ListGroups",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "DeleteGroups",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "DeleteRecords",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "ListConfigResources",
    "DescribeCluster",
    "DescribeTopicPartitions",
    "DescribeLogDirs",
    "AlterReplicaLogDirs",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "DescribeTransactions",
    "ListTransactions",
    "DescribeProducers",
    "DescribeQuorum",
    "UpdateFeatures",
    "ElectLeaders",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "UnregisterBroker",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "DescribeClientQuotas",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
)
"""What brokers' listeners serve."""

CONTROLLER_SERVED: Final = (
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "Fetch",
    "FetchSnapshot",
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
    "DescribeQuorum",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "UpdateRaftVoter",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "UnregisterBroker",
    "ControllerRegistration",
    "AllocateProducerIds",
    "AlterPartition",
    "AssignReplicasToDirs",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "ElectLeaders",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "UpdateFeatures",
    "DescribeCluster",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "Envelope",
)
"""What controllers' listeners serve: the quorum, brokers' reports, and changes to metadata."""

# Version 6 of InitProducerId is marked unstable in 4.3 and hidden by default.
_NEWEST_STABLE: Final = {"InitProducerId": 5}

# librdkafka switches compression off unless it sees Produce from 0 on, although 0-2 are refused when they come.
_OLDEST_TOLD: Final = {"Produce": 0}

_HEAD: Final = Struct(">ii")
_INT32: Final = Struct(">i")


class Route:
    """One version of one API: what to decode, whom to call, what to count."""

    __slots__ = (
        "_head_bytes",
        "_throttle_at",
        "api",
        "flexible",
        "handle",
        "handle_plain",
        "has_error_code",
        "has_throttle_time",
        "key",
        "make_response",
        "metrics",
        "request_class",
        "requests",
        "response_class",
        "version",
    )

    def __init__(
        self,
        api: Api,
        version: int,
        handle: Handler,
        metrics: ApiMetrics,
        handle_plain: PlainHandler | None = None,
    ) -> None:
        self.api = api
        self.key = api.key
        self.version = version
        self.flexible = version >= api.flexible_from
        self.handle = handle
        self.handle_plain = handle_plain
        self.metrics = metrics
        self.requests = 0
        self.request_class: type[Message] = api.request()
        self.response_class: type[Message] = api.response()
        self.make_response: Callable[..., Message] = self.response_class
        # What a version does not carry is left out in silence where it is ignorable: an error would become a success.
        fields = schema_of(self.response_class).fields
        carried = {field.name for field in fields if field.versions.has(version)}
        self.has_error_code = "error_code" in carried
        self.has_throttle_time = "throttle_time_ms" in carried
        # Size, correlation id and tags of the header; 0 when the body may hold file spans and is built in pieces.
        head_bytes = 9 if api.response_header_version(version) else 8
        self._head_bytes = 0 if holds_records(schema_of(self.response_class)) else head_bytes
        in_body = [field.name for field in fields if field.in_body(version)]
        self._throttle_at = _throttle_at(in_body, head_bytes, flexible=self.flexible)

    def throttled(self, frame: bytes, throttle_ms: int) -> bytes:
        """A whole reply, made without a message, that tells of a pause; as it is when its version has no place for it.

        Such a reply has no tagged fields.
        """
        if self._throttle_at is None:
            return frame
        told = bytearray(frame)
        _INT32.pack_into(told, self._throttle_at % len(told), throttle_ms)
        return bytes(told)

    def encode(self, correlation_id: int, message: object) -> list[Records]:
        """A whole reply frame as parts, the first of which begins with the size."""
        if not self._head_bytes:
            return encode_response_parts(correlation_id, message, self.key, self.version)
        out = bytearray(self._head_bytes)
        encode_into(message, self.version, out)
        _HEAD.pack_into(out, 0, len(out) - 4, correlation_id)
        return [out]

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version}"


class Dispatch:
    """The APIs of one kind of listener. `routes` is keyed by `route_key` and filled as versions are asked for."""

    __slots__ = ("_handlers", "_plain", "_served", "metrics", "routes")

    def __init__(
        self,
        served: Sequence[str] = SERVED,
        *,
        unstable: bool = False,
        handlers: dict[str, Handler] | None = None,
    ) -> None:
        """`unstable` is `unstable.api.versions.enable`; `handlers` stand in for modules, by API name."""
        self._served: dict[int, tuple[int, int]] = {}
        for api in APIS.values():
            if api.name in served:
                newest = api.max if unstable else _NEWEST_STABLE.get(api.name, api.max)
                self._served[api.key] = (api.min, newest)
        self._handlers: dict[int, Handler] = {
            api.key: handlers[api.name] for api in APIS.values() if handlers and api.name in handlers
        }
        self._plain: dict[int, PlainHandler] = {}
        self.routes: dict[int, Route] = {}
        self.metrics: dict[int, ApiMetrics] = {}

    def advertised(self) -> Sequence[tuple[int, int, int]]:
        """(key, lowest version, highest version) as ApiVersions tells it, ordered by key."""
        return [
            (key, _OLDEST_TOLD.get(APIS[key].name, first), last) for key, (first, last) in sorted(self._served.items())
        ]

    def route(self, key: int, version: int) -> Route | None:
        """The route of a request, or None when this node does not serve that version of it."""
        found = self.routes.get(route_key(key, version))
        if found is None:
            first, last = self._served.get(key, (0, -1))
            if not first <= version <= last:
                return None
            found = Route(APIS[key], version, self._handler(key), self._metrics(key), self._plain.get(key))
            self.routes[route_key(key, version)] = found
        return found

    def override(self, name: str, wrap: Callable[[Handler], Handler]) -> None:
        """Replaces an API's handler by `wrap(handler)`. The test kit makes requests fail with it."""
        (key,) = (api.key for api in APIS.values() if api.name == name)
        self._handlers[key] = wrapped = wrap(self._handler(key))
        self._plain.pop(key, None)
        for route in self.routes.values():
            if route.api.key == key:
                route.handle = wrapped
                route.handle_plain = None

    def _handler(self, key: int) -> Handler:
        handler = self._handlers.get(key)
        if handler is None:
            module = import_module(f"penstock.server.handlers.{APIS[key].module}")
            handler = self._handlers[key] = module.handle
            if hasattr(module, "handle_plain"):
                self._plain[key] = module.handle_plain
        return handler

    def _metrics(self, key: int) -> ApiMetrics:
        metrics = self.metrics.get(key)
        if metrics is None:
            metrics = self.metrics[key] = ApiMetrics(key, APIS[key].name)
        return metrics


def _throttle_at(fields: list[str], head_bytes: int, *, flexible: bool) -> int | None:
    """Where the throttle time stands in a reply: right after the header, or, in a Produce, at its end (negative)."""
    if fields[:1] == ["throttle_time_ms"]:
        return head_bytes
    return -4 - flexible if fields[-1:] == ["throttle_time_ms"] else None


def route_key(key: int, version: int) -> int:
    return key << 16 | version & 0xFFFF
