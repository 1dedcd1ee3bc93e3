"""What is asked again and again for little: all topics, and the ends of all partitions, read without their codecs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.admin import Admin
from penstock.client.admin.many_ends import _AskedTopic, _Question, _read
from penstock.client.admin.session import Session
from penstock.client.admin.topics import topic_info
from penstock.client.admin.watched_topics import WatchedTopics
from penstock.client.cluster_view import ClusterView
from penstock.model.ids import TopicPartition, Uuid
from penstock.protocol.frame import encode_response_parts
from penstock.protocol.messages.list_offsets import ListOffsetsResponse
from penstock.protocol.messages.metadata import MetadataResponse

NODES = st.lists(st.integers(0, 300), max_size=4)
NAMES = st.text("abcdefgh.-_0123456789", min_size=1, max_size=30)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def topics(draw: st.DrawFn) -> MetadataResponse.MetadataResponseTopic:
    made = MetadataResponse
    return made.MetadataResponseTopic(
        error_code=draw(st.sampled_from([0, 5])),
        name=draw(NAMES),
        topic_id=Uuid(draw(st.binary(min_size=16, max_size=16))),
        is_internal=draw(st.booleans()),
        partitions=[
            made.MetadataResponsePartition(
                error_code=0,
                partition_index=index,
                leader_id=draw(st.integers(-1, 300)),
                leader_epoch=draw(st.integers(0, 1 << 30)),
                replica_nodes=draw(NODES),
                isr_nodes=draw(NODES),
                offline_replicas=draw(NODES),
            )
            for index in range(draw(st.integers(0, 4)))
        ],
    )


@st.composite
def replies(draw: st.DrawFn) -> MetadataResponse:
    made = MetadataResponse
    return made(
        throttle_time_ms=draw(st.integers(0, 1_000)),
        brokers=[
            made.MetadataResponseBroker(node_id=node, host=draw(NAMES), port=9092, rack=draw(st.none() | NAMES))
            for node in draw(st.lists(st.integers(0, 300), unique=True, max_size=3))
        ],
        cluster_id=draw(st.none() | NAMES),
        controller_id=1,
        topics=draw(st.lists(topics(), unique_by=lambda topic: topic.name, max_size=8)),
        error_code=0,
    )


@st.composite
def stories(draw: st.DrawFn) -> list[MetadataResponse]:
    """Replies that follow each other: topics come, go, change, and change places."""
    told = [draw(replies())]
    for _ in range(draw(st.integers(1, 4))):
        before = told[-1].topics
        kept = [topic for topic in before if draw(st.booleans())]
        new = [topic for topic in draw(replies()).topics if topic.name not in {each.name for each in kept}]
        order = draw(st.permutations([*kept, *new]))
        told.append(MetadataResponse(**{**_fields(told[0]), "topics": order}))
    return told


def _fields(reply: MetadataResponse) -> dict[str, Any]:
    return {
        name: getattr(reply, name)
        for name in ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "error_code")
    }


def frame_of(message: object, key: int, version: int) -> bytes:
    return b"".join(map(bytes, encode_response_parts(7, message, key, version)))[4:]


@given(stories(), st.sampled_from([12, 13]))
def test_what_is_read_piece_by_piece_is_what_the_codec_reads(told: list[MetadataResponse], version: int) -> None:
    watched, before = WatchedTopics(Session(ClusterView("localhost:1"))), None
    for reply in told:
        found = watched._compare(frame_of(reply, 3, version), version)
        wanted = {topic.name: topic_info(topic) for topic in reply.topics}
        assert found == wanted
        if before is not None:
            assert (found is before) == (found == before and list(found) == list(before))
            assert all(found[name] is known for name, known in before.items() if found.get(name) == known)
        before = found


@given(
    st.dictionaries(NAMES, st.lists(st.tuples(st.sampled_from([0, 6]), INT64), min_size=1, max_size=5), max_size=6),
    st.booleans(),
    st.integers(6, 11),
)
def test_ends_are_read_to_the_last_digit(told: dict[str, list[tuple[int, int]]], in_order: bool, version: int) -> None:
    made = ListOffsetsResponse
    reply = made(
        throttle_time_ms=3,
        topics=[
            made.ListOffsetsTopicResponse(
                name=name,
                partitions=[
                    made.ListOffsetsPartitionResponse(
                        partition_index=index, error_code=error, timestamp=-1, offset=offset, leader_epoch=2
                    )
                    for index, (error, offset) in enumerate(partitions)
                ],
            )
            for name, partitions in told.items()
        ],
    )
    items = [TopicPartition(name, index) for name, partitions in told.items() for index in range(len(partitions))]
    by_name = sorted(told) if in_order else list(told)
    asked = [_AskedTopic(name.encode(), [each for each in items if each.topic == name]) for name in by_name]
    assert _read(frame_of(reply, 2, version), _Question(items, version, b"", asked)) == {
        TopicPartition(name, index): offset
        for name, partitions in told.items()
        for index, (error, offset) in enumerate(partitions)
        if not error
    }


def test_a_broker_is_watched(administer: Callable[[Callable[[Admin], Awaitable[Any]]], Any]) -> None:
    async def work(admin: Admin) -> None:
        await admin.create_topic("watched-a", 2)
        await admin.topics()
        first = await admin.watched_topics()
        assert first == {topic.name: topic for topic in await admin.topics(internal=True)}
        assert await admin.watched_topics() is first
        await admin.create_topic("watched-b", 1)
        second = await admin.watched_topics()
        assert second["watched-a"] is first["watched-a"]
        assert second == {topic.name: topic for topic in await admin.topics(internal=True)}
        await admin.delete_topic("watched-a")
        assert "watched-a" not in await admin.watched_topics()
        led = {1: [TopicPartition("watched-b", 0)]}
        for when in ("latest", "earliest"):
            assert await admin.ends_of_led(led, when, read_committed=True) == {TopicPartition("watched-b", 0): 0}

    administer(work)
