"""Feature names and levels: what this release can run at and what it gives a new cluster.

A feature's finalized level is cluster state and lives in the image; code that wants to know asks the image, never a
constant here. A feature whose highest level is 0 is not listed as supported, which is how Kafka says "off".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.metadata.entities import VersionRange

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

# metadata.version levels by the release that brought them, where something here depends on one.
METADATA_3_3: Final = 7
METADATA_3_4: Final = 8
METADATA_3_5_SCRAM: Final = 11
METADATA_3_6_NO_EPOCH_BUMP: Final = 12
METADATA_3_6_TRANSACTIONS: Final = 13
METADATA_3_6_TOKENS: Final = 14
METADATA_3_7_CONTROLLERS: Final = 15
METADATA_3_7_DIRECTORIES: Final = 17
METADATA_4_0_ELR: Final = 23
METADATA_4_3: Final = 30

_NAMES: Final = {
    7: "3.3-IV3", 8: "3.4-IV0", 9: "3.5-IV0", 10: "3.5-IV1", 11: "3.5-IV2", 12: "3.6-IV0", 13: "3.6-IV1", 14: "3.6-IV2",
    15: "3.7-IV0", 16: "3.7-IV1", 17: "3.7-IV2", 18: "3.7-IV3", 19: "3.7-IV4", 20: "3.8-IV0", 21: "3.9-IV0",
    22: "4.0-IV0", 23: "4.0-IV1", 24: "4.0-IV2", 25: "4.0-IV3", 26: "4.1-IV0", 27: "4.1-IV1", 28: "4.2-IV0",
    29: "4.2-IV1", 30: "4.3-IV0",
}  # fmt: skip

# Levels of metadata.version that changed records, so going below one of them could lose what they hold.
_CHANGES_METADATA: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})

SUPPORTED: Final[Mapping[str, VersionRange]] = {
    ELR_VERSION: VersionRange(0, 1),
    GROUP_VERSION: VersionRange(0, 1),
    KRAFT_VERSION: VersionRange(0, 1),
    METADATA_VERSION: VersionRange(METADATA_3_3, METADATA_4_3),
    TRANSACTION_VERSION: VersionRange(0, 2),
}
"""What a node of this release supports, by name. Features that are not served yet are absent."""

NEW_CLUSTER: Final[Mapping[str, int]] = {
    METADATA_VERSION: METADATA_4_3,
    ELR_VERSION: 1,
    GROUP_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""Levels a newly formatted cluster is bootstrapped with, in the order of its records; kraft.version is apart."""

NEW_CLUSTER_KRAFT_VERSION: Final = 1

NOT_SERVED: Final = frozenset({SHARE_VERSION, STREAMS_VERSION})
"""Features of Kafka that are known and off. A cluster that Apache Kafka formatted may have them finalized: that stops
nobody, because the requests they are about are not offered."""

KNOWN: Final = frozenset({*SUPPORTED, *NOT_SERVED})
"""Every feature this release has heard of."""


def bootstrap_levels(levels: Mapping[str, int] = NEW_CLUSTER) -> list[tuple[str, int]]:
    """Levels in the order of bootstrap records: metadata.version, then by name; none at 0, never kraft.version."""
    others = sorted(
        name for name, level in levels.items() if level > 0 and name not in (METADATA_VERSION, KRAFT_VERSION)
    )
    return [(METADATA_VERSION, levels[METADATA_VERSION]), *((name, levels[name]) for name in others)]


def metadata_version_text(level: int) -> str:
    """Kafka's spelling of a metadata.version level: 30 is `4.3-IV0`."""
    return _NAMES.get(level, str(level))


def loses_metadata(current: int, wanted: int) -> bool:
    """Whether going down from `current` to `wanted` passes a level whose records the lower one cannot hold."""
    return any(wanted < level <= current for level in _CHANGES_METADATA)
