"""An image as the ordered records of a snapshot, and back.

The order is Kafka's: features, brokers and controllers, topics, configs, quotas, producer ids, ACLs, SCRAM credentials,
delegation tokens. Within a kind the order is made deterministic, so equal images give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.metadata import features
from penstock.metadata.entities import UNSEEN_PARTITION, BrokerImage, ControllerImage, PartitionImage
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import Record, VersionedRecord, version_of
from penstock.model.ids import Epoch, Offset, Uuid
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord, RegisterControllerRecord
from penstock.protocol.disk.metadata_configs import ClientQuotaRecord, ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord, ProducerIdsRecord
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord


def snapshot_records(image: ClusterImage) -> Iterator[VersionedRecord]:
    """The records that make up `image`, each with the version of the image's metadata.version."""
    assert not image.in_transaction, "no snapshot inside a metadata transaction"
    level = image.metadata_version
    for name, feature_level in features.bootstrap_levels(image.features) if level else sorted(image.features.items()):
        yield FeatureLevelRecord(name=name, feature_level=feature_level), 0
    for _, broker in sorted(image.brokers.items()):
        yield broker_record(broker), version_of(RegisterBrokerRecord, level)
    for _, controller in sorted(image.controllers.items()):
        yield _controller_record(controller), version_of(RegisterControllerRecord, level)
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id), 0
        for index, partition in enumerate(topic.partitions):
            if partition is not UNSEEN_PARTITION:
                yield partition_record(topic.id, index, partition, level)
    for key, values in image.configs.items():
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=key.type, resource_name=key.name, name=name, value=value), 0
    for entity, limits in image.quotas.items():
        parts = [ClientQuotaRecord.EntityData(entity_type=type, entity_name=name) for type, name in entity]
        for name, limit in sorted(limits.items()):
            yield ClientQuotaRecord(entity=parts, key=name, value=limit), 0
    if image.producer_ids is not None:
        broker_id, broker_epoch, next_id = image.producer_ids
        yield ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=next_id), 0
    for table in (image.acls, image.scram, image.tokens):
        for record in table.values():
            yield record, 0


def image_of(records: Iterable[Record], offset: Offset, epoch: Epoch) -> ClusterImage:
    """The image that a snapshot's records make. `offset` is the last one the snapshot contains, its end less one."""
    image = ClusterImage()
    for record in records:
        image.apply(record, offset, epoch)
    image.skip_to(offset, epoch)
    return image


def partition_record(topic_id: Uuid, index: int, partition: PartitionImage, level: int) -> VersionedRecord:
    """The record that makes `partition` out of nothing, as the metadata.version of `level` has it."""
    knows_directories = level >= features.METADATA_3_7_DIRECTORIES
    record = PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if knows_directories else [],
        # An absent tag and an empty list read the same; Kafka leaves the tag out.
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )
    return record, version_of(PartitionRecord, level)


def broker_record(broker: BrokerImage) -> RegisterBrokerRecord:
    """The record that registers `broker` as it is."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.migrating_from_zookeeper,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in broker.endpoints
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if broker.cordoned_log_dirs is None else list(broker.cordoned_log_dirs),
    )


def _controller_record(controller: ControllerImage) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zookeeper_migration_ready,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in controller.endpoints
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in controller.features
        ],
    )
