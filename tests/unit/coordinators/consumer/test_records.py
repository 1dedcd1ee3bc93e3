"""Records as Apache Kafka 4.3.1 writes them, the hash in them, and descriptions."""

from __future__ import annotations

from penstock.coordinators.groups.consumer import records
from penstock.coordinators.groups.consumer.describe import described
from penstock.coordinators.groups.consumer.member import UNREVOKED, ClassicMetadata, Member
from penstock.coordinators.groups.consumer.topic_hash import group_hash
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Offset, Uuid
from penstock.protocol.codec import encode
from penstock.protocol.disk.consumer_group_records import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from tests.unit.coordinators.consumer.scene import Scene, kinds, topic_id

HASHED = Uuid(bytes(range(16)))


def image_of(racks: dict[int, str | None], replicas: list[list[int]]) -> ClusterImage:
    image = ClusterImage()
    for node, rack in racks.items():
        image.apply(RegisterBrokerRecord(broker_id=node, incarnation_id=HASHED, rack=rack), Offset(0), Epoch(0))
    image.apply(TopicRecord(name="héllo", topic_id=HASHED), Offset(0), Epoch(0))
    for index, nodes in enumerate(replicas):
        image.apply(PartitionRecord(partition_id=index, topic_id=HASHED, replicas=nodes), Offset(0), Epoch(0))
    return image


def test_the_hash_is_kafkas() -> None:
    """Values made with the hash library that Kafka uses."""
    assert group_hash(["héllo"], image_of({}, [[1], [1], [1]]), {}) == 6424543538560298741
    assert group_hash(["héllo"], image_of({1: "r2", 2: "r1", 3: None}, [[1, 2, 3], [3]]), {}) == -3764559670539368736
    assert group_hash(["nothing"], image_of({}, []), {}) == 0


def test_topics_without_partitions_count_too() -> None:
    assert group_hash(["héllo"], image_of({}, []), {}) != 0


def test_a_member_record_holds_all_that_it_said() -> None:
    member = Member(
        "m",
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=5,
        client_id="c",
        client_host="/h",
        topics=frozenset({"b", "a"}),
        assignor="range",
        classic=ClassicMetadata(7, (("range", b"x"),)),
    )
    record = records.member_record("g", member)
    assert encode(record.value, 0) == bytes.fromhex(
        "0269 0272 0263 032f68 03 0261 0262 01 00000005 0672616e6765 01 00 10 01 00000007 02 0672616e6765 0278 00 00"
    )


def test_a_current_assignment_says_since_when_each_partition_is_owned() -> None:
    member = Member(
        "m", epoch=3, previous_epoch=2, state=UNREVOKED, assigned={HASHED: {1: 3, 0: 2}}, revoking={HASHED: {2: 2}}
    )
    value = records.current_record("g", member).value
    assert [(t.partitions, t.assignment_epochs) for t in value.assigned_partitions] == [([0, 1], [2, 3])]
    assert [(t.partitions, t.assignment_epochs) for t in value.partitions_pending_revocation] == [([2], [2])]


def test_partition_metadata_of_older_releases_is_removed_at_the_next_look() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t")
    key = ConsumerGroupPartitionMetadataKey(group_id="g")
    scene.shard.apply(records.StateRecord(key, ConsumerGroupPartitionMetadataValue(topics=[])))
    scene.beat("a", 2)
    assert kinds(scene.log)[-1] == "-PartitionMetadata"
    assert not scene.group.has_partition_metadata


def test_a_description_shows_what_members_have_and_shall_have() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t", rack_id="r")
    scene.join("b", "t", server_assignor="range")
    scene.beat("a", 2, owned={"t": [0, 1]})
    group = described(scene.group, scene.image)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert (group.assignor_name, group.error_code) == ("range", 0)
    first, second = group.members
    assert [(t.topic_name, t.partitions) for t in first.assignment.topic_partitions] == [("t", [0, 1])]
    assert [(t.topic_id, t.partitions) for t in first.target_assignment.topic_partitions] == [(topic_id("t"), [0])]
    assert (first.rack_id, first.member_epoch, first.member_type, first.subscribed_topic_names) == ("r", 2, 1, ["t"])
    assert (second.member_epoch, second.assignment.topic_partitions) == (3, [])
