"""What records make of an image, what shows when, and what the delta says."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given

from penstock.metadata.delta import Delta
from penstock.metadata.difference import delta_between
from penstock.metadata.entities import ConfigKey, PartitionImage
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Offset
from penstock.protocol.disk.metadata_configs import ClientQuotaRecord, ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from penstock.protocol.disk.metadata_security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from penstock.protocol.disk.metadata_topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from penstock.protocol.disk.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from tests.unit.metadata.worlds import FEATURES, applied, histories, partition, uuid_of

TOPIC = TopicRecord(name="orders", topic_id=uuid_of(1))


def test_a_change_bumps_the_partition_epoch_and_a_named_leader_bumps_the_leader_epoch() -> None:
    image = applied([TOPIC, partition(1, 0, [1, 2])])
    applied([PartitionChangeRecord(topic_id=uuid_of(1), partition_id=0, isr=[1])], image)
    shrunk = image.partition(uuid_of(1), 0)
    assert shrunk is not None
    assert (shrunk.isr, shrunk.leader_epoch, shrunk.partition_epoch) == ((1,), 0, 1)
    applied([PartitionChangeRecord(topic_id=uuid_of(1), partition_id=0, leader=2, isr=[2])], image)
    moved = image.partition(uuid_of(1), 0)
    assert moved == PartitionImage(
        replicas=(1, 2),
        directories=(uuid_of(101), uuid_of(102)),
        isr=(2,),
        leader=2,
        leader_epoch=Epoch(1),
        partition_epoch=2,
    )


def test_partitions_may_come_in_any_order() -> None:
    image = applied([TOPIC, partition(1, 1, [1])])
    topic = image.topic("orders")
    assert topic is not None
    assert topic.get(0) is None
    applied([partition(1, 0, [1])], image)
    assert topic.get(0) == topic.get(1)
    assert topic.get(2) is None
    assert topic.get(-1) is None


def test_a_deleted_topic_takes_its_configs_along() -> None:
    config = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1")
    image = applied([TOPIC, config, partition(1, 0, [1]), RemoveTopicRecord(topic_id=uuid_of(1))])
    assert (image.topics, image.ids, image.configs) == ({}, {}, {})


def test_clearing_the_elr_of_all_topics_leaves_none() -> None:
    image = applied([TOPIC, partition(1, 0, [1, 2], isr=[1], eligible_leader_replicas=[2]), ClearElrRecord()])
    cleared = image.partition(uuid_of(1), 0)
    assert cleared is not None
    assert (cleared.elr, cleared.partition_epoch) == ((), 1)


def test_a_level_of_zero_ends_a_feature() -> None:
    image = applied([*FEATURES, FeatureLevelRecord(name="group.version", feature_level=0)])
    assert image.features == {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    assert image.metadata_version == 30
    assert image.elr_enabled


def test_nothing_of_a_transaction_shows_before_its_end() -> None:
    image = applied([*FEATURES, BeginTransactionRecord(name="t"), TOPIC])
    assert image.in_transaction
    assert (image.topics, image.offset) == ({}, 2)
    applied_at = Offset(5)
    image.apply(EndTransactionRecord(), applied_at, Epoch(1))
    assert (list(image.ids), image.offset, image.in_transaction) == (["orders"], 5, False)


def test_nothing_of_an_aborted_transaction_ever_shows() -> None:
    image = applied([*FEATURES, BeginTransactionRecord(), TOPIC, AbortTransactionRecord()])
    assert image == applied(list(FEATURES))
    assert image.delta.created == {}


def test_a_copy_goes_its_own_way() -> None:
    image = applied([TOPIC, partition(1, 0, [1, 2])])
    twin = image.copy()
    assert twin == image
    assert not twin.delta
    applied([PartitionChangeRecord(topic_id=uuid_of(1), partition_id=0, isr=[1])], twin)
    assert twin != image


def test_the_delta_names_what_changed_and_starts_again() -> None:
    config = ConfigRecord(resource_type=4, resource_name="", name="k", value="1")
    image = applied([TOPIC, partition(1, 0, [1]), config])
    assert image.take_delta() == Delta(
        created={uuid_of(1): "orders"}, partitions={uuid_of(1): {0}}, configs={ConfigKey(4, "")}
    )
    assert not image.take_delta()
    topic = image.topic("orders")
    assert topic is not None
    applied([RemoveTopicRecord(topic_id=uuid_of(1))], image)
    assert image.take_delta() == Delta(deleted={uuid_of(1): topic})


def test_the_delta_names_acls_credentials_and_tokens_by_their_keys() -> None:
    added = [
        AccessControlEntryRecord(id=uuid_of(1), resource_name="t", principal="User:x"),
        UserScramCredentialRecord(name="u", mechanism=2),
        DelegationTokenRecord(token_id="k", owner="User:x"),
    ]
    image = applied(added)
    first = image.take_delta()
    assert first == Delta(acls={uuid_of(1)}, scram={(2, "u")}, tokens={"k"})
    assert first.security
    removed = [
        RemoveAccessControlEntryRecord(id=uuid_of(1)),
        RemoveUserScramCredentialRecord(name="u", mechanism=2),
        RemoveDelegationTokenRecord(token_id="k"),
    ]
    before = image.copy()
    assert applied(removed, image).take_delta() == first == delta_between(before, image)
    assert (image.acls, image.scram, image.tokens) == ({}, {}, {})


def test_an_entity_of_a_quota_is_the_same_in_either_order() -> None:
    parts = [ClientQuotaRecord.EntityData(entity_type=type, entity_name="x") for type in ("user", "client-id")]
    one = ClientQuotaRecord(entity=parts, key="k", value=1.0)
    other = ClientQuotaRecord(entity=parts[::-1], key="k", value=2.0)
    assert applied([one, other]).quotas == {(("client-id", "x"), ("user", "x")): {"k": 2.0}}


def test_a_topic_that_came_and_went_is_in_no_delta() -> None:
    image = applied([TOPIC, partition(1, 0, [1]), RemoveTopicRecord(topic_id=uuid_of(1))])
    assert not image.delta


@given(histories(), histories())
def test_the_delta_between_two_images_names_every_difference(old: list[Any], new: list[Any]) -> None:
    before, after = applied(old), applied(new)
    common = before.topics.keys() & after.topics.keys()
    assume(all(len(before.topics[each].partitions) <= len(after.topics[each].partitions) for each in common))
    delta = delta_between(before, after)
    assert bool(delta) == (before != after)
    assert set(delta.created) == after.topics.keys() - before.topics.keys()
    assert set(delta.deleted) == before.topics.keys() - after.topics.keys()


def test_ten_thousand_partitions_are_all_there() -> None:
    records = [TopicRecord(name=f"t{n}", topic_id=uuid_of(n)) for n in range(100)]
    parts = [partition(topic, index, [1, 2, 3]) for topic in range(100) for index in range(100)]
    image = ClusterImage()
    for record in [*records, *parts]:
        image.apply(record, Offset(0), Epoch(0))
    assert sum(len(topic.partitions) for topic in image.topics.values()) == 10_000
