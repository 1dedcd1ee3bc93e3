"""What the first controller of a new cluster writes before anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.controller.decision import Decision, World
from penstock.metadata import features
from penstock.metadata.entities import CONFIG_BROKER
from penstock.metadata.records import Record, VersionedRecord
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from penstock.protocol.disk.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


def decide_activation(world: World, bootstrap: Callable[[], Iterable[Record]]) -> Decision:
    """The records to write on becoming active.

    An empty log gets `bootstrap` (the records of bootstrap.checkpoint; this release's levels when there are none) as
    one transaction. A transaction that a dead controller left open is aborted.
    """
    records: list[Record]
    aborted: list[VersionedRecord] = []
    if world.image.in_transaction:
        aborted = [(AbortTransactionRecord(reason="a new controller took over"), 0)]
    if not world.image.empty:
        return Decision(aborted)
    records = list(bootstrap())
    if not records:
        records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in features.bootstrap_levels()]
    levels = {each.name: each.feature_level for each in records if isinstance(each, FeatureLevelRecord)}
    if levels.get(features.ELR_VERSION, 0) > 0:
        # Eligible replicas depend on the minimum, so it must be the same for all brokers: it becomes cluster state.
        records.append(min_isr_record(world))
    versioned: list[VersionedRecord] = [(record, 0) for record in records]
    if levels.get(features.METADATA_VERSION, 0) >= features.METADATA_3_6_TRANSACTIONS:
        versioned = [(BeginTransactionRecord(name="Bootstrap records"), 0), *versioned, (EndTransactionRecord(), 0)]
    return Decision([*aborted, *versioned])


def min_isr_record(world: World) -> ConfigRecord:
    """Writes this controller's min.insync.replicas down for the whole cluster."""
    return ConfigRecord(
        resource_type=CONFIG_BROKER,
        resource_name="",
        name="min.insync.replicas",
        value=str(world.settings.min_insync_replicas),
    )
