"""A cluster that begins old: its offsets, epochs and ids stand where years of work would have brought them.

    past = Past(Age(offset=(1 << 53) - 1_000), [OldTopic("orders", [[1, 2, 3]])])
    with broker(past=past) as b:
        ...

The files are those that a long life leaves: a snapshot of the metadata that ends at a late offset and epoch, logs whose
first segment begins late, and records of groups that have rebalanced often. Nothing of the product knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from penstock.coordinators.groups.consumer import records as consumer_records
from penstock.coordinators.groups.records import group_record
from penstock.coordinators.groups.table import CONSUMER_PROTOCOL_TYPE
from penstock.coordinators.home import home_partition
from penstock.coordinators.transactions.records import FLEXIBLE_VALUE as _FLEXIBLE
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.requests import EPOCH_PER_TRANSACTION
from penstock.coordinators.transactions.transaction import NO_PARTITIONS, NO_TIME, State, Status
from penstock.kernels import read_header
from penstock.metadata.features import METADATA_VERSION, NEW_CLUSTER, NEW_CLUSTER_KRAFT_VERSION
from penstock.metadata.records import VersionedRecord, version_of
from penstock.model.ids import (
    DIRECTORY_UNASSIGNED,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    Epoch,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
    new_uuid,
)
from penstock.protocol.disk.classic_group_records import GroupMetadataValue
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import ProducerIdsRecord
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from penstock.quorum.state import QuorumState
from penstock.server.coordinating.records import encode_batch
from penstock.server.formatting import METADATA_DIRECTORY, bootstrap_records
from penstock.server.quorum.snapshot_file import CheckpointWriter, SnapshotId, read_checkpoint
from penstock.server.quorum.state_file import QUORUM_STATE, encode_quorum_state
from penstock.storage.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, OffsetCheckpoint
from penstock.storage.clean_shutdown import write_clean_shutdown
from penstock.storage.log import Log
from penstock.storage.names import partition_directory
from penstock.storage.settings import PlainLogSettings

if TYPE_CHECKING:
    from penstock.coordinators.decision import StateRecord
    from penstock.model.config import BrokerSettings
    from penstock.model.ids import Millis
    from penstock.model.ports import Files

OLD_EPOCH = (1 << 31) - 100_000
"""An epoch that years of elections would reach. What is left is room for those of a test."""

_NOBODY = -1
_TOPIC_RESOURCE = 2
_UNCOMPRESSED = 0
_LEVEL = NEW_CLUSTER[METADATA_VERSION]
_BEGINNING = SnapshotId(Offset(0), Epoch(0)).file_name
_OFFSETS_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer"}


@dataclass(frozen=True, slots=True)
class Age:
    """How far the counters of a cluster have come."""

    offset: int
    """Where every log begins, that of the metadata too, and so what the epochs of brokers are near to."""

    epoch: int = OLD_EPOCH
    """Of the quorum, of leaders, of partitions, and of groups."""

    producer_id: int = (1 << 53) - 1_000
    """The first one that is left."""


@dataclass(frozen=True, slots=True)
class OldTopic:
    """A topic whose partitions have these replicas, all in sync."""

    name: str
    replicas: Sequence[Sequence[int]]
    configs: Mapping[str, str] = field(default_factory=dict)
    offset: int | None = None
    """Where its logs begin, if not where all do."""

    @property
    def id(self) -> Uuid:
        return new_uuid(Random(self.name))


def offsets_topic(replicas: Sequence[Sequence[int]]) -> OldTopic:
    """The topic of the groups."""
    return OldTopic(OFFSETS_TOPIC, replicas, _OFFSETS_CONFIGS)


def transactions_topic(replicas: Sequence[Sequence[int]]) -> OldTopic:
    """The topic of the transactional ids."""
    return OldTopic(TRANSACTIONS_TOPIC, replicas, _OFFSETS_CONFIGS)


@dataclass(frozen=True, slots=True)
class Past:
    """What a cluster has behind it. Groups need `offsets_topic` among the topics to be remembered in, transactional
    ids `transactions_topic`."""

    age: Age
    topics: Sequence[OldTopic] = ()
    classic_groups: Sequence[str] = ()
    consumer_groups: Sequence[str] = ()
    transactional_ids: Mapping[str, int] = field(default_factory=dict)
    """The epochs of ids that have committed often and have nothing open."""

    def lay_down(self, files: Files, settings: BrokerSettings, now: Millis) -> None:
        """Gives a formatted node that has not started yet its part of the past. All nodes of a cluster get theirs."""
        if settings.is_controller:
            self._remember_metadata(files, f"{settings.metadata_log_dir}/{METADATA_DIRECTORY}", now)
        if settings.is_broker:
            self._lay_logs(files, settings.log_dirs[0], settings.node_id, now)
            for directory in settings.log_dirs:
                write_clean_shutdown(files, directory, self._broker_epoch)

    # -- the metadata

    def _remember_metadata(self, files: Files, directory: str, now: Millis) -> None:
        """One snapshot takes the place of that from which a new cluster starts; the voters stay who they are."""
        epoch, beginning = Epoch(self.age.epoch), f"{directory}/{_BEGINNING}"
        voters = read_checkpoint(beginning, files.read(beginning)).voters
        writer = CheckpointWriter(epoch, now)
        data = writer.header(now, NEW_CLUSTER_KRAFT_VERSION, voters) + writer.data(self._records()) + writer.footer()
        files.write_atomic(f"{directory}/{SnapshotId(Offset(self.age.offset), epoch).file_name}", data)
        files.write_atomic(f"{directory}/{QUORUM_STATE}", encode_quorum_state(QuorumState(epoch=epoch)))
        files.remove(beginning)
        files.sync_dir(directory)

    def _records(self) -> list[VersionedRecord]:
        records = bootstrap_records()
        records.append((ProducerIdsRecord(broker_id=1, next_producer_id=self.age.producer_id), 0))
        records += [(self._broker(node_id), version_of(RegisterBrokerRecord, _LEVEL)) for node_id in self._brokers()]
        version = version_of(PartitionRecord, _LEVEL)
        for topic in self.topics:
            records.append((TopicRecord(name=topic.name, topic_id=topic.id), 0))
            records += [
                (self._partition(topic, number, replicas), version) for number, replicas in enumerate(topic.replicas)
            ]
            records += [
                (ConfigRecord(resource_type=_TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value), 0)
                for name, value in topic.configs.items()
            ]
        return records

    def _brokers(self) -> list[int]:
        return sorted({replica for topic in self.topics for replicas in topic.replicas for replica in replicas})

    def _broker(self, node_id: int) -> RegisterBrokerRecord:
        """The registration of a process that stopped cleanly. The one that comes next names this epoch."""
        return RegisterBrokerRecord(
            broker_id=node_id, incarnation_id=new_uuid(Random(node_id)), broker_epoch=self._broker_epoch
        )

    @property
    def _broker_epoch(self) -> int:
        return self.age.offset - 1

    def _partition(self, topic: OldTopic, number: int, replicas: Sequence[int]) -> PartitionRecord:
        """Nobody leads it yet: brokers that come up are elected, each time in an epoch of its own."""
        return PartitionRecord(
            partition_id=number,
            topic_id=topic.id,
            replicas=list(replicas),
            isr=list(replicas),
            leader=_NOBODY,
            leader_epoch=self.age.epoch,
            partition_epoch=self.age.epoch,
            directories=[DIRECTORY_UNASSIGNED] * len(replicas),
        )

    # -- the logs

    def _lay_logs(self, files: Files, directory: str, node_id: NodeId, now: Millis) -> None:
        starts, ends = {}, {}
        for topic in self.topics:
            for number, replicas in enumerate(topic.replicas):
                if node_id in replicas:
                    name = TopicPartition(topic.name, number)
                    log = self._make_log(files, directory, name, topic, now)
                    starts[name], ends[name] = log.log_start, log.next
        for checkpoint, offsets in ((LOG_STARTS, starts), (RECOVERY_POINTS, ends), (HIGH_WATERMARKS, ends)):
            OffsetCheckpoint(files, f"{directory}/{checkpoint}").write(offsets)

    def _make_log(self, files: Files, home: str, name: TopicPartition, topic: OldTopic, now: Millis) -> Log:
        """A log that begins late, closed as in a clean stop."""
        epoch, start = Epoch(self.age.epoch), Offset(self.age.offset if topic.offset is None else topic.offset)
        settings = PlainLogSettings(file_delete_delay_ms=0)
        log = Log.create(files, f"{home}/{partition_directory(name)}", name, topic.id, settings, now=now)
        log.truncate_fully(start, now=now)
        log.epochs.assign(epoch, start)
        kept = self._group_records(topic, name.partition) + self._transaction_records(topic, name.partition, now)
        if kept:
            batch = encode_batch(kept, now, _UNCOMPRESSED)
            log.append(batch, read_header(batch), epoch, now)
        log.purge(0)  # the segment that began at 0
        log.close()
        return log

    def _group_records(self, topic: OldTopic, number: int) -> list[StateRecord]:
        """The groups whose home is this partition: empty ones, which have rebalanced often."""
        if topic.name != OFFSETS_TOPIC:
            return []
        count, epoch = len(topic.replicas), self.age.epoch
        records = [
            group_record(
                name,
                GroupMetadataValue(protocol_type=CONSUMER_PROTOCOL_TYPE, generation=epoch, protocol=None, leader=None),
            )
            for name in self.classic_groups
            if home_partition(name, count) == number
        ]
        for name in self.consumer_groups:
            if home_partition(name, count) == number:
                records.append(consumer_records.group_record(name, epoch, 0))
                records.append(consumer_records.target_epoch_record(name, epoch, 0))
        return records

    def _transaction_records(self, topic: OldTopic, number: int, now: Millis) -> list[StateRecord]:
        """The transactional ids whose home is this partition; their producer ids lie before those that are left."""
        if topic.name != TRANSACTIONS_TOPIC:
            return []
        return [
            state_record(name, _completed(self.age.producer_id - 1 - place, epoch, now), _FLEXIBLE)
            for place, (name, epoch) in enumerate(self.transactional_ids.items())
            if home_partition(name, len(topic.replicas)) == number
        ]


def _completed(producer_id: int, epoch: int, now: Millis) -> State:
    return State(
        producer_id, epoch, 60_000, Status.COMPLETE_COMMIT, NO_PARTITIONS, now, NO_TIME, producer_id, _NOBODY,
        EPOCH_PER_TRANSACTION,
    )  # fmt: skip
