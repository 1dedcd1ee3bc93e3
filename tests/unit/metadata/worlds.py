"""Images and record streams that the tests of metadata and controller share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Offset, Uuid
from penstock.protocol.disk.metadata_brokers import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from penstock.protocol.disk.metadata_configs import ClientQuotaRecord, ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord, NoOpRecord, ProducerIdsRecord
from penstock.protocol.disk.metadata_security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from penstock.protocol.disk.metadata_topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


def uuid_of(number: int) -> Uuid:
    return Uuid((number + 1000).to_bytes(16, "big"))


def applied(records: list[Any], image: ClusterImage | None = None) -> ClusterImage:
    image = image or ClusterImage()
    for offset, record in enumerate(records, start=image.offset + 1):
        image.apply(record, Offset(offset), Epoch(1))
    return image


def broker(number: int, **changes: Any) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        **{
            "broker_id": number,
            "incarnation_id": uuid_of(number),
            "broker_epoch": 10 + number,
            "end_points": [RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host=f"host-{number}", port=9092)],
            "features": [
                RegisterBrokerRecord.BrokerFeature(
                    name="metadata.version", min_supported_version=7, max_supported_version=30
                )
            ],
            "rack": None,
            "fenced": False,
            "log_dirs": [uuid_of(100 + number)],
            **changes,
        }
    )


def partition(topic: int, index: int, replicas: list[int], **changes: Any) -> PartitionRecord:
    return PartitionRecord(
        **{
            "partition_id": index,
            "topic_id": uuid_of(topic),
            "replicas": replicas,
            "isr": replicas,
            "leader": replicas[0],
            "leader_epoch": 0,
            "partition_epoch": 0,
            "directories": [uuid_of(100 + replica) for replica in replicas],
            **changes,
        }
    )


FEATURES = [
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
    FeatureLevelRecord(name="group.version", feature_level=1),
]


@st.composite
def histories(draw: st.DrawFn) -> list[Any]:
    """Any legal stream of records, of every kind that an image keeps."""
    records: list[Any] = list(FEATURES)
    brokers: set[int] = set()
    topics: dict[int, int] = {}
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(
            st.sampled_from(
                [
                    "broker",
                    "change",
                    "unbroker",
                    "controller",
                    "topic",
                    "grow",
                    "move",
                    "drop",
                    "config",
                    "quota",
                    "ids",
                    "sec",
                ]
            )
        )
        number = draw(st.integers(0, 4))
        if kind == "broker":
            brokers.add(number)
            records.append(broker(number, rack=draw(st.sampled_from([None, "r1", "r2"]))))
        elif kind == "change" and number in brokers:
            records.append(BrokerRegistrationChangeRecord(broker_id=number, fenced=draw(st.sampled_from([-1, 1]))))
        elif kind == "unbroker" and number in brokers:
            brokers.remove(number)
            records.append(UnregisterBrokerRecord(broker_id=number))
        elif kind == "controller":
            records.append(RegisterControllerRecord(controller_id=number, incarnation_id=uuid_of(number)))
        elif kind == "topic" and number not in topics:
            topics[number] = 0
            records.append(TopicRecord(name=f"topic-{number}", topic_id=uuid_of(number)))
        elif kind == "grow" and number in topics:
            records.append(partition(number, topics[number], [1, 2, 3]))
            topics[number] += 1
        elif kind == "move" and topics.get(number):
            records.append(
                PartitionChangeRecord(
                    topic_id=uuid_of(number),
                    partition_id=draw(st.integers(0, topics[number] - 1)),
                    leader=draw(st.sampled_from([-2, -1, 1, 2])),
                    isr=draw(st.sampled_from([None, [], [1], [1, 2]])),
                    eligible_leader_replicas=draw(st.sampled_from([None, [], [3]])),
                    last_known_elr=draw(st.sampled_from([None, [], [2]])),
                    leader_recovery_state=draw(st.sampled_from([-1, 0, 1])),
                )
            )
        elif kind == "drop" and number in topics:
            del topics[number]
            records.append(RemoveTopicRecord(topic_id=uuid_of(number)))
        elif kind == "config":
            value = draw(st.sampled_from([None, "1", "two"]))
            type_ = draw(st.sampled_from([2, 4, 16, 32]))
            records.append(ConfigRecord(resource_type=type_, resource_name=f"topic-{number}", name="k", value=value))
        elif kind == "quota":
            entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=draw(st.sampled_from([None, "u"])))]
            records.append(ClientQuotaRecord(entity=entity, key="k", value=1.5, remove=draw(st.booleans())))
        elif kind == "ids":
            records.append(ProducerIdsRecord(broker_id=number, broker_epoch=3, next_producer_id=1000 * number))
        elif kind == "sec":
            records.append(AccessControlEntryRecord(id=uuid_of(number), resource_name="t", principal="User:x"))
            records.append(UserScramCredentialRecord(name=f"u{number}", mechanism=1, salt=b"s", iterations=4096))
            records.append(DelegationTokenRecord(token_id=str(number), owner="User:x"))
        else:
            records.append(NoOpRecord())
    return records
