"""The cluster as a value. `apply` is the only way it changes, on every node alike.

The active controller has a *working* image at the end of its log, every broker a *published* one at the high watermark:
the same class, never the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.metadata import features
from penstock.metadata.delta import Delta
from penstock.metadata.entities import (
    CONFIG_TOPIC,
    UNSEEN_PARTITION,
    BrokerImage,
    ConfigKey,
    ControllerImage,
    Endpoint,
    PartitionImage,
    ProducerIdsImage,
    TopicImage,
    VersionRange,
    shared,
)
from penstock.model.ids import DIRECTORY_MIGRATING, NO_EPOCH, Epoch, NodeId, Offset, Uuid

if TYPE_CHECKING:
    from penstock.protocol.disk import metadata_brokers as brokers
    from penstock.protocol.disk import metadata_configs as configs
    from penstock.protocol.disk import metadata_features as levels
    from penstock.protocol.disk import metadata_security as security
    from penstock.protocol.disk import metadata_topics as topics
    from penstock.protocol.disk import metadata_transactions as transactions

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whose limit: (type, name) by type in the order of the alphabet; the name is None for the default of the type."""

_NOTHING: dict[str, str] = {}
_FENCE, _UNFENCE = 1, -1


class ClusterImage:
    """Everything the metadata log says. Tables may be read freely and are changed by `apply` alone.

    `offset` and `epoch` are those of the last record that shows in the image; records of an open metadata transaction
    do not show, and neither an image may be published nor a snapshot made while `in_transaction`.
    """

    __slots__ = (
        "_held",
        "acls",
        "brokers",
        "configs",
        "controllers",
        "delta",
        "epoch",
        "features",
        "ids",
        "offset",
        "producer_ids",
        "quotas",
        "scram",
        "tokens",
        "topics",
    )

    def __init__(self) -> None:
        self.offset = Offset(-1)
        self.epoch: Epoch = NO_EPOCH
        self.topics: dict[Uuid, TopicImage] = {}
        self.ids: dict[str, Uuid] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, ControllerImage] = {}
        self.features: dict[str, int] = {}
        self.configs: dict[ConfigKey, dict[str, str]] = {}
        self.producer_ids: ProducerIdsImage | None = None
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[Uuid, security.AccessControlEntryRecord] = {}
        self.scram: dict[tuple[int, str], security.UserScramCredentialRecord] = {}
        self.tokens: dict[str, security.DelegationTokenRecord] = {}
        self.delta = Delta()
        self._held: list[Any] | None = None

    # Reading

    def topic(self, name: str) -> TopicImage | None:
        """The topic of this name."""
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, topic_id: Uuid, partition: int) -> PartitionImage | None:
        """A partition by the id of its topic."""
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.get(partition)

    def config(self, type: int, name: str) -> dict[str, str]:
        """What was set on a resource dynamically; empty when nothing was."""
        return self.configs.get(ConfigKey(type, name), _NOTHING)

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version, 0 before the first record that sets it."""
        return self.features.get(features.METADATA_VERSION, 0)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(features.ELR_VERSION, 0) > 0

    @property
    def in_transaction(self) -> bool:
        return self._held is not None

    @property
    def empty(self) -> bool:
        """Whether no record has set anything: the log of a cluster that was never active."""
        return not (self.features or self.topics or self.brokers or self.controllers or self.configs)

    def copy(self) -> ClusterImage:
        """An image that goes its own way from here, with an empty delta. Values are shared, tables are not."""
        twin = ClusterImage()
        twin._held = None if self._held is None else list(self._held)
        twin.offset, twin.epoch, twin.producer_ids = self.offset, self.epoch, self.producer_ids
        twin.topics = {topic_id: topic.copy() for topic_id, topic in self.topics.items()}
        twin.configs = {key: dict(values) for key, values in self.configs.items()}
        twin.quotas = {entity: dict(values) for entity, values in self.quotas.items()}
        for table in ("ids", "brokers", "controllers", "features", "acls", "scram", "tokens"):
            setattr(twin, table, dict(getattr(self, table)))
        return twin

    def take_delta(self) -> Delta:
        """What changed since the last call."""
        delta, self.delta = self.delta, Delta()
        return delta

    def __eq__(self, other: object) -> bool:
        """Equal content; where in the log it was reached does not matter."""
        if not isinstance(other, ClusterImage):
            return NotImplemented
        return all(getattr(self, table) == getattr(other, table) for table in _CONTENT)

    __hash__ = None  # type: ignore[assignment]  # an image changes

    # Changing

    def apply(self, record: Any, offset: Offset, epoch: Epoch) -> None:
        """Takes in the record at `offset`, written in `epoch`. Records come in log order."""
        held = self._held
        if held is not None and record.__class__.__name__ not in _ENDS_TRANSACTION:
            held.append(record)
            return
        _APPLY[record.__class__.__name__](self, record)
        if self._held is None:
            self.offset, self.epoch = offset, epoch

    def skip_to(self, offset: Offset, epoch: Epoch) -> None:
        """Moves on over records that are not metadata (control records, the records of a snapshot)."""
        if self._held is None:
            self.offset, self.epoch = offset, epoch

    def _begin(self, _record: transactions.BeginTransactionRecord) -> None:
        self._held = []

    def _end(self, _record: transactions.EndTransactionRecord) -> None:
        held, self._held = self._held or [], None
        for each in held:
            _APPLY[each.__class__.__name__](self, each)

    def _abort(self, _record: transactions.AbortTransactionRecord) -> None:
        self._held = None

    def _nothing(self, _record: Any) -> None:
        """NoOp, and states of a migration that no supported release can be in."""

    def _topic(self, record: topics.TopicRecord) -> None:
        self.topics[record.topic_id] = TopicImage(record.name, record.topic_id)
        self.ids[record.name] = record.topic_id
        self.delta.created[record.topic_id] = record.name

    def _remove_topic(self, record: topics.RemoveTopicRecord) -> None:
        topic = self.topics.pop(record.topic_id)
        if self.ids.get(topic.name) == topic.id:
            del self.ids[topic.name]
        if self.configs.pop(ConfigKey(CONFIG_TOPIC, topic.name), None) is not None:
            self.delta.configs.add(ConfigKey(CONFIG_TOPIC, topic.name))
        self.delta.topic_deleted(topic)

    def _partition(self, record: topics.PartitionRecord) -> None:
        partitions = self.topics[record.topic_id].partitions
        replicas = tuple(record.replicas)
        now = shared(
            PartitionImage(
                replicas,
                tuple(record.directories) or (DIRECTORY_MIGRATING,) * len(replicas),
                tuple(record.isr),
                tuple(record.eligible_leader_replicas or ()),
                tuple(record.last_known_elr or ()),
                record.leader,
                Epoch(record.leader_epoch),
                record.partition_epoch,
                record.leader_recovery_state,
                tuple(record.adding_replicas),
                tuple(record.removing_replicas),
            )
        )
        index = record.partition_id
        while len(partitions) <= index:
            partitions.append(UNSEEN_PARTITION)
        partitions[index] = now
        self.delta.partition_changed(record.topic_id, index)

    def _partition_change(self, record: topics.PartitionChangeRecord) -> None:
        partitions = self.topics[record.topic_id].partitions
        partitions[record.partition_id] = merge(partitions[record.partition_id], record)
        self.delta.partition_changed(record.topic_id, record.partition_id)

    def _clear_elr(self, record: topics.ClearElrRecord) -> None:
        for topic in [self.topics[self.ids[record.topic_name]]] if record.topic_name else self.topics.values():
            for index, partition in enumerate(topic.partitions):
                if partition.elr or partition.last_known_elr:
                    cleared = partition._replace(
                        elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                    )
                    topic.partitions[index] = cleared
                    self.delta.partition_changed(topic.id, index)

    def _register_broker(self, record: brokers.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = BrokerImage(
            id=NodeId(record.broker_id),
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            cordoned_log_dirs=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
            migrating_from_zookeeper=record.is_migrating_zk_broker,
        )
        self.delta.brokers.add(record.broker_id)

    def _unregister_broker(self, record: brokers.UnregisterBrokerRecord) -> None:
        del self.brokers[record.broker_id]
        self.delta.brokers.add(record.broker_id)

    def _change_broker(self, broker_id: int, **changes: Any) -> None:
        self.brokers[broker_id] = self.brokers[broker_id]._replace(**changes)
        self.delta.brokers.add(broker_id)

    def _fence_broker(self, record: brokers.FenceBrokerRecord) -> None:
        self._change_broker(record.id, fenced=True)

    def _unfence_broker(self, record: brokers.UnfenceBrokerRecord) -> None:
        self._change_broker(record.id, fenced=False)

    def _broker_change(self, record: brokers.BrokerRegistrationChangeRecord) -> None:
        changes: dict[str, Any] = {}
        if record.fenced in (_FENCE, _UNFENCE):
            changes["fenced"] = record.fenced == _FENCE
        if record.in_controlled_shutdown:
            changes["in_controlled_shutdown"] = True
        if record.log_dirs:
            changes["log_dirs"] = tuple(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            changes["cordoned_log_dirs"] = tuple(record.cordoned_log_dirs)
        self._change_broker(record.broker_id, **changes)

    def _register_controller(self, record: brokers.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = ControllerImage(
            NodeId(record.controller_id),
            record.incarnation_id,
            _endpoints(record.end_points),
            _features(record.features),
            record.zk_migration_ready,
        )
        self.delta.controllers.add(record.controller_id)

    def _feature_level(self, record: levels.FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)
        self.delta.features.add(record.name)

    def _producer_ids(self, record: levels.ProducerIdsRecord) -> None:
        self.producer_ids = ProducerIdsImage(NodeId(record.broker_id), record.broker_epoch, record.next_producer_id)
        self.delta.producer_ids = True

    def _config(self, record: configs.ConfigRecord) -> None:
        key = ConfigKey(record.resource_type, record.resource_name)
        values = self.configs.setdefault(key, {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if not values:
            del self.configs[key]
        self.delta.configs.add(key)

    def _quota(self, record: configs.ClientQuotaRecord) -> None:
        entity = quota_entity((part.entity_type, part.entity_name) for part in record.entity)
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]
        self.delta.quotas = True

    def _acl(self, record: security.AccessControlEntryRecord) -> None:
        self.acls[record.id] = record
        self.delta.acls.add(record.id)

    def _remove_acl(self, record: security.RemoveAccessControlEntryRecord) -> None:
        self.acls.pop(record.id, None)
        self.delta.acls.add(record.id)

    def _scram(self, record: security.UserScramCredentialRecord) -> None:
        self.scram[record.mechanism, record.name] = record
        self.delta.scram.add((record.mechanism, record.name))

    def _remove_scram(self, record: security.RemoveUserScramCredentialRecord) -> None:
        self.scram.pop((record.mechanism, record.name), None)
        self.delta.scram.add((record.mechanism, record.name))

    def _token(self, record: security.DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = record
        self.delta.tokens.add(record.token_id)

    def _remove_token(self, record: security.RemoveDelegationTokenRecord) -> None:
        self.tokens.pop(record.token_id, None)
        self.delta.tokens.add(record.token_id)


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """One and the same key for an entity, in whatever order a record or request names its parts."""
    return tuple(sorted(parts, key=_type_of))


def _type_of(part: tuple[str, str | None]) -> str:
    return part[0]


def merge(partition: PartitionImage, change: topics.PartitionChangeRecord) -> PartitionImage:
    """The partition after `change`: its epoch is one higher, the leader's too when the change names a leader."""
    led = change.leader != -2
    merged = PartitionImage(
        partition.replicas if change.replicas is None else tuple(change.replicas),
        _directories(partition, change),
        partition.isr if change.isr is None else tuple(change.isr),
        partition.elr if change.eligible_leader_replicas is None else tuple(change.eligible_leader_replicas),
        partition.last_known_elr if change.last_known_elr is None else tuple(change.last_known_elr),
        change.leader if led else partition.leader,
        Epoch(partition.leader_epoch + 1) if led else partition.leader_epoch,
        partition.partition_epoch + 1,
        partition.leader_recovery_state if change.leader_recovery_state < 0 else change.leader_recovery_state,
        partition.adding if change.adding_replicas is None else tuple(change.adding_replicas),
        partition.removing if change.removing_replicas is None else tuple(change.removing_replicas),
    )
    return shared(merged)


def _directories(partition: PartitionImage, change: topics.PartitionChangeRecord) -> tuple[Uuid, ...]:
    """One for each replica, also when the record is so old that it has no place for them."""
    if change.directories is not None:
        return tuple(change.directories)
    if change.replicas is None:
        return partition.directories
    return tuple(partition.directory_of(each) or DIRECTORY_MIGRATING for each in change.replicas)


def _endpoints(found: list[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(each.name, each.host, each.port, each.security_protocol) for each in found)


def _features(found: list[Any]) -> tuple[tuple[str, VersionRange], ...]:
    ranges = ((each.name, VersionRange(each.min_supported_version, each.max_supported_version)) for each in found)
    return tuple(sorted(ranges))


_CONTENT = (
    "topics", "ids", "brokers", "controllers", "features", "configs",
    "producer_ids", "quotas", "acls", "scram", "tokens",
)  # fmt: skip

_ENDS_TRANSACTION = frozenset({"EndTransactionRecord", "AbortTransactionRecord"})

# By the name of the class, so that a kind of record nobody has written need not be imported.
_APPLY: dict[str, Callable[[ClusterImage, Any], None]] = {
    "RegisterBrokerRecord": ClusterImage._register_broker,
    "UnregisterBrokerRecord": ClusterImage._unregister_broker,
    "TopicRecord": ClusterImage._topic,
    "PartitionRecord": ClusterImage._partition,
    "ConfigRecord": ClusterImage._config,
    "PartitionChangeRecord": ClusterImage._partition_change,
    "FenceBrokerRecord": ClusterImage._fence_broker,
    "UnfenceBrokerRecord": ClusterImage._unfence_broker,
    "RemoveTopicRecord": ClusterImage._remove_topic,
    "DelegationTokenRecord": ClusterImage._token,
    "UserScramCredentialRecord": ClusterImage._scram,
    "FeatureLevelRecord": ClusterImage._feature_level,
    "ClientQuotaRecord": ClusterImage._quota,
    "ProducerIdsRecord": ClusterImage._producer_ids,
    "BrokerRegistrationChangeRecord": ClusterImage._broker_change,
    "AccessControlEntryRecord": ClusterImage._acl,
    "RemoveAccessControlEntryRecord": ClusterImage._remove_acl,
    "NoOpRecord": ClusterImage._nothing,
    "ZkMigrationStateRecord": ClusterImage._nothing,
    "RemoveUserScramCredentialRecord": ClusterImage._remove_scram,
    "BeginTransactionRecord": ClusterImage._begin,
    "EndTransactionRecord": ClusterImage._end,
    "AbortTransactionRecord": ClusterImage._abort,
    "RemoveDelegationTokenRecord": ClusterImage._remove_token,
    "RegisterControllerRecord": ClusterImage._register_controller,
    "ClearElrRecord": ClusterImage._clear_elr,
}
