"""OffsetCommit and OffsetFetch as data, in every version."""

from __future__ import annotations

import pytest

from penstock.client.consumer.group.commits import (
    Identity,
    commit_refusals,
    commit_request,
    fetch_request,
    fetched,
    version_for,
)
from penstock.client.consumer.offsets import OffsetAndMetadata
from penstock.model.errors import NONE, STALE_MEMBER_EPOCH
from penstock.model.ids import TopicPartition, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

T = Uuid(b"t" * 16)
P0 = TopicPartition("t", 0)
WHO = Identity("g", "me", 7, "i", by_epoch=True)


def id_of(topic: str) -> Uuid | None:
    return T if topic == "t" else None


def name_of(topic_id: bytes) -> str | None:
    return "t" if topic_id == T else None


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_can_be_said_in_every_version(version: int) -> None:
    request = commit_request(WHO, {P0: OffsetAndMetadata(5, "note", 3)}, version, id_of)
    said, _ = decode(OffsetCommitRequest, version, encode(request, version))
    assert (said.group_id, said.member_id, said.generation_id_or_member_epoch) == ("g", "me", 7)
    assert said.group_instance_id == ("i" if version >= 7 else None)
    assert (said.topics[0].name, said.topics[0].topic_id) == (("", T) if version >= 10 else ("t", bytes(16)))
    partition = said.topics[0].partitions[0]
    assert (partition.committed_offset, partition.committed_metadata) == (5, "note")
    assert partition.committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 11))
def test_committed_offsets_can_be_asked_for_in_every_version(version: int) -> None:
    request = fetch_request(WHO, [P0], version, id_of)
    said, _ = decode(OffsetFetchRequest, version, encode(request, version))
    assert said.require_stable == (version >= 7)
    if version >= 8:
        assert (said.groups[0].member_id, said.groups[0].member_epoch) == (("me", 7) if version >= 9 else (None, -1))
    else:
        assert said.group_id == "g"


def test_a_classic_member_asks_without_its_id() -> None:
    request = fetch_request(WHO._replace(by_epoch=False), [P0], 9, id_of)
    assert request.groups[0].member_id is None


def test_ids_are_used_only_when_all_are_known() -> None:
    assert version_for(10, ["t"], id_of) == 10
    assert version_for(10, ["t", "new"], id_of) == 9
    assert version_for(8, ["t", "new"], id_of) == 8


def test_what_was_refused_is_named() -> None:
    partition = OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=0, error_code=113)
    fine = OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=1)
    reply = OffsetCommitResponse(
        topics=[OffsetCommitResponse.OffsetCommitResponseTopic(topic_id=T, partitions=[partition, fine])]
    )
    assert list(commit_refusals(reply, name_of)) == [(P0, STALE_MEMBER_EPOCH)]


def test_partitions_without_an_offset_are_left_out() -> None:
    none = OffsetFetchResponse.OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1, metadata="")
    some = OffsetFetchResponse.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata=None)
    topic = OffsetFetchResponse.OffsetFetchResponseTopics(topic_id=T, partitions=[some, none])
    reply = OffsetFetchResponse(groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", topics=[topic])])
    assert fetched(reply, name_of) == (NONE, [], {P0: OffsetAndMetadata(5, "", -1)})
