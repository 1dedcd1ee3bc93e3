"""Finds the key and value classes of a record of `__consumer_offsets` by the int16 that its key begins with."""

from __future__ import annotations

from importlib import import_module

_MODULES = {
    "classic_group_records": {0: "LegacyOffsetCommit", 1: "OffsetCommit", 2: "GroupMetadata"},
    "consumer_group_records": {
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        16: "ConsumerGroupRegularExpression",
    },
    "share_group_records": {
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
    },
    "streams_group_records": {
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    },
}

GROUP_RECORDS: dict[int, tuple[str, str]] = {
    key: (module, name) for module, names in _MODULES.items() for key, name in names.items()
}


def group_record(key: int) -> tuple[type, type]:
    """The classes of key and value; KeyError when nothing is stored under `key`."""
    module, name = GROUP_RECORDS[key]
    loaded = import_module(f"penstock.protocol.disk.{module}")
    return getattr(loaded, f"{name}Key"), getattr(loaded, f"{name}Value")
