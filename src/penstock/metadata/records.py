"""Metadata records as values of log records: uvarints for frame version 1, type and version, then the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from penstock.kernels import Record as LogRecord
from penstock.metadata import features
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.batch import build_batch
from penstock.protocol.codec import decode, encode_into
from penstock.protocol.primitives import read_uvarint, uvarint
from penstock.protocol.wire import Malformed, schema_of

FRAME_VERSION: Final = 1

Record = Any
"""A message of `penstock.protocol.disk` that the metadata log may hold."""

VersionedRecord = tuple[Record, int]
"""A record and the version it is written in."""

_WHERE: Final[Mapping[int, tuple[str, str]]] = {
    0: ("metadata_brokers", "RegisterBrokerRecord"),
    1: ("metadata_brokers", "UnregisterBrokerRecord"),
    2: ("metadata_topics", "TopicRecord"),
    3: ("metadata_topics", "PartitionRecord"),
    4: ("metadata_configs", "ConfigRecord"),
    5: ("metadata_topics", "PartitionChangeRecord"),
    7: ("metadata_brokers", "FenceBrokerRecord"),
    8: ("metadata_brokers", "UnfenceBrokerRecord"),
    9: ("metadata_topics", "RemoveTopicRecord"),
    10: ("metadata_security", "DelegationTokenRecord"),
    11: ("metadata_security", "UserScramCredentialRecord"),
    12: ("metadata_features", "FeatureLevelRecord"),
    14: ("metadata_configs", "ClientQuotaRecord"),
    15: ("metadata_features", "ProducerIdsRecord"),
    17: ("metadata_brokers", "BrokerRegistrationChangeRecord"),
    18: ("metadata_security", "AccessControlEntryRecord"),
    19: ("metadata_security", "RemoveAccessControlEntryRecord"),
    20: ("metadata_features", "NoOpRecord"),
    21: ("metadata_features", "ZkMigrationStateRecord"),
    22: ("metadata_security", "RemoveUserScramCredentialRecord"),
    23: ("metadata_transactions", "BeginTransactionRecord"),
    24: ("metadata_transactions", "EndTransactionRecord"),
    25: ("metadata_transactions", "AbortTransactionRecord"),
    26: ("metadata_security", "RemoveDelegationTokenRecord"),
    27: ("metadata_brokers", "RegisterControllerRecord"),
    28: ("metadata_topics", "ClearElrRecord"),
}
RECORD_TYPES: Final = tuple(_WHERE)
"""The type numbers of every record this release knows."""

_classes: dict[int, type[Any]] = {}

# The version a record is written in rises at these levels of metadata.version; other records have version 0 only.
_VERSION_STEPS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "RegisterBrokerRecord": (
        (features.METADATA_4_3, 4),
        (features.METADATA_3_7_DIRECTORIES, 3),
        (features.METADATA_3_4, 2),
        (7, 1),
    ),
    "PartitionRecord": ((features.METADATA_4_0_ELR, 2), (features.METADATA_3_7_DIRECTORIES, 1)),
    "PartitionChangeRecord": ((features.METADATA_4_0_ELR, 2), (features.METADATA_3_7_DIRECTORIES, 1)),
}


def record_class(key: int) -> type[Any]:
    """The class of the records with this type number, imported at its first use; Malformed when there is none."""
    found = _classes.get(key)
    if found is None:
        if key not in _WHERE:
            raise Malformed(f"metadata record type {key} is not known to this release")
        module, name = _WHERE[key]
        found = _classes[key] = getattr(import_module(f"penstock.protocol.disk.{module}"), name)
    return found


def version_of(record_class: type[Any], metadata_version: int) -> int:
    """The version in which records of this class are written at a level of metadata.version.

    A BrokerRegistrationChangeRecord is not asked for here: its version says which of its fields are meant.
    """
    for level, version in _VERSION_STEPS.get(record_class.__name__, ()):
        if metadata_version >= level:
            return version
    return 0


def frame_record(message: Record, version: int) -> bytes:
    """The value of the log record that carries `message`."""
    out = bytearray((FRAME_VERSION,))
    out += uvarint(schema_of(message.__class__).key)
    out += uvarint(version)
    encode_into(message, version, out)
    return bytes(out)


def unframe_record(data: bytes | bytearray | memoryview) -> Record:
    """The message in the value of a log record; Malformed when it is not one."""
    return unframe_versioned(data)[0]


def unframe_versioned(data: bytes | bytearray | memoryview) -> VersionedRecord:
    """As `unframe_record`, with the version it was written in."""
    raw = data if data.__class__ is bytes else bytes(data)
    try:
        frame_version, position = read_uvarint(raw, 0)
        key, position = read_uvarint(raw, position)
        version, position = read_uvarint(raw, position)
    except IndexError:
        raise Malformed("a metadata record ends within its frame") from None
    if frame_version != FRAME_VERSION:
        raise Malformed(f"metadata frame version {frame_version} is not {FRAME_VERSION}")
    message, end = decode(record_class(key), version, raw, position)
    if end != len(raw):
        raise Malformed(f"{len(raw) - end} bytes follow a {message.__class__.__name__}")
    return message, version


def record_batch(records: Sequence[VersionedRecord], *, base: Offset, epoch: Epoch, now: Millis) -> bytes:
    """One batch of metadata records as the log and its snapshots hold them: no key, uncompressed."""
    rows = [
        LogRecord(Offset(base + index), now, None, frame_record(record, version), ())
        for index, (record, version) in enumerate(records)
    ]
    return build_batch(rows, base_offset=base, leader_epoch=epoch)
