"""Which APIs there are, as of Apache Kafka 4.3: key, name, versions, listeners. Importing it makes no message class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

NEVER: Final = 32767
"""The first flexible version of an API that has none."""

BROKER: Final = frozenset({"broker"})
CONTROLLER: Final = frozenset({"controller"})
BOTH: Final = frozenset({"broker", "controller"})

API_VERSIONS: Final = 18


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `min` and `max` are the versions that exist; what a node advertises is the server's business."""

    key: int
    name: str
    min: int
    max: int
    flexible_from: int
    listeners: frozenset[str]
    module: str
    """The name of its module in `penstock.protocol.messages`, and of its handler."""
    tags_from: int
    """The first version whose responses have tags in their header. None of ApiVersions have: a client reads its reply
    before it can know which versions the node speaks."""

    def has(self, version: int) -> bool:
        return self.min <= version <= self.max

    def request(self) -> type[Any]:
        """The class of its request; imports the module at the first call."""
        return _class_of(self.module, f"{self.name}Request")

    def response(self) -> type[Any]:
        """The class of its response; imports the module at the first call."""
        return _class_of(self.module, f"{self.name}Response")

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        return 1 if version >= self.tags_from else 0


# key, name, first and last version, first flexible version, listeners
_TABLE: Final = (
    (0, "Produce", 3, 13, 9, BROKER),
    (1, "Fetch", 4, 18, 12, BOTH),
    (2, "ListOffsets", 1, 11, 6, BROKER),
    (3, "Metadata", 0, 13, 9, BROKER),
    (8, "OffsetCommit", 2, 10, 8, BROKER),
    (9, "OffsetFetch", 1, 10, 6, BROKER),
    (10, "FindCoordinator", 0, 6, 3, BROKER),
    (11, "JoinGroup", 0, 9, 6, BROKER),
    (12, "Heartbeat", 0, 4, 4, BROKER),
    (13, "LeaveGroup", 0, 5, 4, BROKER),
    (14, "SyncGroup", 0, 5, 4, BROKER),
    (15, "DescribeGroups", 0, 6, 5, BROKER),
    (16, "ListGroups", 0, 5, 3, BROKER),
    (17, "SaslHandshake", 0, 1, NEVER, BOTH),
    (18, "ApiVersions", 0, 4, 3, BOTH),
    (19, "CreateTopics", 2, 7, 5, BOTH),
    (20, "DeleteTopics", 1, 6, 4, BOTH),
    (21, "DeleteRecords", 0, 2, 2, BROKER),
    (22, "InitProducerId", 0, 6, 2, BROKER),
    (23, "OffsetForLeaderEpoch", 2, 4, 4, BROKER),
    (24, "AddPartitionsToTxn", 0, 5, 3, BROKER),
    (25, "AddOffsetsToTxn", 0, 4, 3, BROKER),
    (26, "EndTxn", 0, 5, 3, BROKER),
    (27, "WriteTxnMarkers", 1, 2, 1, BROKER),
    (28, "TxnOffsetCommit", 0, 5, 3, BROKER),
    (29, "DescribeAcls", 1, 3, 2, BOTH),
    (30, "CreateAcls", 1, 3, 2, BOTH),
    (31, "DeleteAcls", 1, 3, 2, BOTH),
    (32, "DescribeConfigs", 1, 4, 4, BOTH),
    (33, "AlterConfigs", 0, 2, 2, BOTH),
    (34, "AlterReplicaLogDirs", 1, 2, 2, BROKER),
    (35, "DescribeLogDirs", 1, 5, 2, BROKER),
    (36, "SaslAuthenticate", 0, 2, 2, BOTH),
    (37, "CreatePartitions", 0, 3, 2, BOTH),
    (38, "CreateDelegationToken", 1, 3, 2, BOTH),
    (39, "RenewDelegationToken", 1, 2, 2, BOTH),
    (40, "ExpireDelegationToken", 1, 2, 2, BOTH),
    (41, "DescribeDelegationToken", 1, 3, 2, BOTH),
    (42, "DeleteGroups", 0, 2, 2, BROKER),
    (43, "ElectLeaders", 0, 2, 2, BOTH),
    (44, "IncrementalAlterConfigs", 0, 1, 1, BOTH),
    (45, "AlterPartitionReassignments", 0, 1, 0, BOTH),
    (46, "ListPartitionReassignments", 0, 0, 0, BOTH),
    (47, "OffsetDelete", 0, 0, NEVER, BROKER),
    (48, "DescribeClientQuotas", 0, 1, 1, BROKER),
    (49, "AlterClientQuotas", 0, 1, 1, BOTH),
    (50, "DescribeUserScramCredentials", 0, 0, 0, BOTH),
    (51, "AlterUserScramCredentials", 0, 0, 0, BOTH),
    (52, "Vote", 0, 2, 0, CONTROLLER),
    (53, "BeginQuorumEpoch", 0, 1, 1, CONTROLLER),
    (54, "EndQuorumEpoch", 0, 1, 1, CONTROLLER),
    (55, "DescribeQuorum", 0, 2, 0, BOTH),
    (56, "AlterPartition", 2, 3, 0, CONTROLLER),
    (57, "UpdateFeatures", 0, 2, 0, BOTH),
    (58, "Envelope", 0, 0, 0, CONTROLLER),
    (59, "FetchSnapshot", 0, 1, 0, CONTROLLER),
    (60, "DescribeCluster", 0, 2, 0, BOTH),
    (61, "DescribeProducers", 0, 0, 0, BROKER),
    (62, "BrokerRegistration", 0, 4, 0, CONTROLLER),
    (63, "BrokerHeartbeat", 0, 2, 0, CONTROLLER),
    (64, "UnregisterBroker", 0, 0, 0, BOTH),
    (65, "DescribeTransactions", 0, 0, 0, BROKER),
    (66, "ListTransactions", 0, 2, 0, BROKER),
    (67, "AllocateProducerIds", 0, 0, 0, CONTROLLER),
    (68, "ConsumerGroupHeartbeat", 0, 1, 0, BROKER),
    (69, "ConsumerGroupDescribe", 0, 1, 0, BROKER),
    (70, "ControllerRegistration", 0, 0, 0, CONTROLLER),
    (71, "GetTelemetrySubscriptions", 0, 0, 0, BROKER),
    (72, "PushTelemetry", 0, 0, 0, BROKER),
    (73, "AssignReplicasToDirs", 0, 0, 0, CONTROLLER),
    (74, "ListConfigResources", 0, 1, 0, BROKER),
    (75, "DescribeTopicPartitions", 0, 0, 0, BROKER),
    (76, "ShareGroupHeartbeat", 1, 1, 0, BROKER),
    (77, "ShareGroupDescribe", 1, 1, 0, BROKER),
    (78, "ShareFetch", 1, 2, 0, BROKER),
    (79, "ShareAcknowledge", 1, 2, 0, BROKER),
    (80, "AddRaftVoter", 0, 1, 0, BOTH),
    (81, "RemoveRaftVoter", 0, 0, 0, BOTH),
    (82, "UpdateRaftVoter", 0, 0, 0, CONTROLLER),
    (83, "InitializeShareGroupState", 0, 0, 0, BROKER),
    (84, "ReadShareGroupState", 0, 0, 0, BROKER),
    (85, "WriteShareGroupState", 0, 1, 0, BROKER),
    (86, "DeleteShareGroupState", 0, 0, 0, BROKER),
    (87, "ReadShareGroupStateSummary", 0, 1, 0, BROKER),
    (88, "StreamsGroupHeartbeat", 0, 0, 0, BROKER),
    (89, "StreamsGroupDescribe", 0, 0, 0, BROKER),
    (90, "DescribeShareGroupOffsets", 0, 1, 0, BROKER),
    (91, "AlterShareGroupOffsets", 0, 0, 0, BROKER),
    (92, "DeleteShareGroupOffsets", 0, 0, 0, BROKER),
)


def module_name(name: str) -> str:
    """`DescribeAcls` -> `describe_acls`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


APIS: Final[dict[int, Api]] = {
    key: Api(
        key,
        name,
        first,
        last,
        flexible_from,
        listeners,
        module_name(name),
        tags_from=NEVER if key == API_VERSIONS else flexible_from,
    )
    for key, name, first, last, flexible_from, listeners in _TABLE
}


def api(key: int) -> Api:
    """The API of a key; KeyError when there is none."""
    return APIS[key]


@cache
def _class_of(module: str, name: str) -> type[Any]:
    found: type[Any] = getattr(import_module(f"penstock.protocol.messages.{module}"), name)
    return found
