"""Administration, typed: everything that a broker serves, ours or Apache Kafka's.

`Admin` is the door; each subject has a module of its own with its dataclasses and what it asks, imported when it is
first needed, because a command that lists topics should not pay for consumer groups. May import what `client` may.

Invariants: a request goes to the broker that can answer it (leader, coordinator, the broker itself, else any: brokers
pass on what only the controller decides). What another try can mend is tried again until the time is up. Calls for
many things give `Results`: what worked and what did not, side by side.

Read `session.py` first (asking and trying again), then `topics.py` and `groups.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.admin.acls import Acl, AclFilter
    from penstock.client.admin.admin import Admin
    from penstock.client.admin.cluster import BrokerInfo, ClusterInfo, FeatureInfo, QuorumInfo, QuorumReplica
    from penstock.client.admin.configs import ConfigEntry, ConfigResource
    from penstock.client.admin.group_offsets import CommittedOffset, PartitionLag
    from penstock.client.admin.groups import GroupInfo, GroupListing, MemberInfo
    from penstock.client.admin.log_dirs import LogDirInfo, ReplicaInfo
    from penstock.client.admin.offsets import OffsetInfo
    from penstock.client.admin.open_transactions import OpenTransaction
    from penstock.client.admin.placement import Reassignment
    from penstock.client.admin.producers import ProducerInfo
    from penstock.client.admin.quotas import QuotaEntity
    from penstock.client.admin.scram_users import ScramCredential, ScramPassword, ScramRemoval
    from penstock.client.admin.session import Results
    from penstock.client.admin.tokens import DelegationToken
    from penstock.client.admin.topics import PartitionInfo, TopicInfo
    from penstock.client.admin.transactions import TransactionInfo, TransactionListing

_HOMES = {
    "Acl": "acls",
    "AclFilter": "acls",
    "Admin": "admin",
    "BrokerInfo": "cluster",
    "ClusterInfo": "cluster",
    "CommittedOffset": "group_offsets",
    "ConfigEntry": "configs",
    "ConfigResource": "configs",
    "DelegationToken": "tokens",
    "FeatureInfo": "cluster",
    "GroupInfo": "groups",
    "GroupListing": "groups",
    "LogDirInfo": "log_dirs",
    "MemberInfo": "groups",
    "OffsetInfo": "offsets",
    "OpenTransaction": "open_transactions",
    "PartitionInfo": "topics",
    "PartitionLag": "group_offsets",
    "ProducerInfo": "producers",
    "QuorumInfo": "cluster",
    "QuorumReplica": "cluster",
    "QuotaEntity": "quotas",
    "Reassignment": "placement",
    "ReplicaInfo": "log_dirs",
    "Results": "session",
    "ScramCredential": "scram_users",
    "ScramPassword": "scram_users",
    "ScramRemoval": "scram_users",
    "TopicInfo": "topics",
    "TransactionInfo": "transactions",
    "TransactionListing": "transactions",
}

__all__ = [
    "Acl",
    "AclFilter",
    "Admin",
    "BrokerInfo",
    "ClusterInfo",
    "CommittedOffset",
    "ConfigEntry",
    "ConfigResource",
    "DelegationToken",
    "FeatureInfo",
    "GroupInfo",
    "GroupListing",
    "LogDirInfo",
    "MemberInfo",
    "OffsetInfo",
    "OpenTransaction",
    "PartitionInfo",
    "PartitionLag",
    "ProducerInfo",
    "QuorumInfo",
    "QuorumReplica",
    "QuotaEntity",
    "Reassignment",
    "ReplicaInfo",
    "Results",
    "ScramCredential",
    "ScramPassword",
    "ScramRemoval",
    "TopicInfo",
    "TransactionInfo",
    "TransactionListing",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
