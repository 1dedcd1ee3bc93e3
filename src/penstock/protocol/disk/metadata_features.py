"""Metadata-log records about the cluster as a whole: feature levels, producer ids, and a record that says nothing."""

from __future__ import annotations

from penstock.protocol.wire import int8, int16, int32, int64, message, string


@message(key=12, kind="metadata", versions="0", flexible="0+")
class FeatureLevelRecord:
    name: str = string()
    feature_level: int = int16()


@message(key=15, kind="metadata", versions="0", flexible="0+")
class ProducerIdsRecord:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


@message(key=20, kind="metadata", versions="0", flexible="0+")
class NoOpRecord:
    """Says nothing but its own presence."""


@message(key=21, kind="metadata", versions="0", flexible="0+")
class ZkMigrationStateRecord:
    zk_migration_state: int = int8()
