"""What readers see of open, committed and aborted transactions."""

from __future__ import annotations

from penstock.protocol.messages.describe_producers import DescribeProducersRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.compat.answers.world import BASE_MS
from tests.compat.transactions.deviations import SMALL_BYTES
from tests.compat.transactions.looking import READ_COMMITTED, READ_UNCOMMITTED, agreed
from tests.compat.transactions.scripts.table import INT64_MAX, script
from tests.compat.transactions.stage import Stage

ISOLATIONS = (READ_UNCOMMITTED, READ_COMMITTED, 2, -1)


async def _history(stage: Stage) -> None:
    """Committed, aborted, committed, and one that is still open; partition 1 has an aborted one alone."""
    await stage.init()
    for commit in (True, False, True):
        await stage.add(partitions={stage.topic: [0, 1]})
        for sequence in range(3):
            await stage.produce(12, sequence)
        if not commit:
            await stage.produce(12, 0, partition=1)
        await stage.end(5, commit=commit)
    other = f"{stage.id}-other"
    told = await stage.init(name=other)
    await stage.produce(12, name=other, pid=told.producer_id, epoch=0)
    plain = stage.batch(-1, pid=-1, epoch=-1, transactional=False)
    await stage.produce(9, data={0: plain}, name=None)


@script("Fetch")
async def by_both_isolations(stage: Stage, version: int) -> None:
    await _history(stage)
    made = FetchRequest
    named = {"topic": stage.topic} if version < 13 else {"topic_id": stage.duo.world.ids[stage.topic]}
    # Any other isolation makes Kafka fail inside.
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        for offset in (0, 3, 4, 6, 7, 8, 11, 12, 13, 14, 99, -1):
            for bytes_max in (1 << 20, SMALL_BYTES):
                wanted = [
                    made.FetchPartition(partition=each, fetch_offset=offset, partition_max_bytes=bytes_max)
                    for each in (0, 1)
                ]
                topics = [made.FetchTopic(**named, partitions=wanted)]
                request = made(max_wait_ms=0, min_bytes=0, isolation_level=isolation, topics=topics)
                await agreed(stage, request, version)


@script("ListOffsets")
async def ends_by_both_isolations(stage: Stage, version: int) -> None:
    await _history(stage)
    made = ListOffsetsRequest
    for isolation in ISOLATIONS if version >= 2 else (0,):
        for timestamp in (-1, -2, -3, -4, -5, 0, BASE_MS, BASE_MS + 1, INT64_MAX):
            wanted = [made.ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in (0, 1, 2)]
            topics = [made.ListOffsetsTopic(name=stage.topic, partitions=wanted)]
            await agreed(stage, made(replica_id=-1, isolation_level=isolation, topics=topics), version)


@script("DescribeProducers")
async def producers_of_odd_partitions(stage: Stage, version: int) -> None:
    await _history(stage)
    made = DescribeProducersRequest
    for topic, indexes in ((stage.topic, [0, 1]), (stage.topic, [2, -1]), (stage.topic, []), ("missing", [0])):
        request = made(topics=[made.TopicRequest(name=topic, partition_indexes=indexes)])
        await agreed(stage, request, version)


@script("OffsetFetch", since=7)
async def stable_offsets(stage: Stage, version: int) -> None:
    await stage.init()
    made = OffsetFetchRequest
    for commit in (True, False, True):
        await stage.commit_offsets(5, offsets={stage.topic: [(0, stage.epoch)]})
        for stable in (False, True):
            for topics in (None, [0, 1], []):
                await agreed(stage, _wanted(made, stage, version, topics, stable), version)
        await stage.end(5, commit=commit)
        await agreed(stage, _wanted(made, stage, version, None, True), version)


def _wanted(
    made: type[OffsetFetchRequest], stage: Stage, version: int, indexes: list[int] | None, stable: bool
) -> OffsetFetchRequest:
    if version < 8:
        named = made.OffsetFetchRequestTopic(name=stage.topic, partition_indexes=indexes or [])
        topics = None if indexes is None else [named] if indexes else []
        return made(group_id=stage.group, topics=topics, require_stable=stable)
    by = {"name": stage.topic} if version < 10 else {"topic_id": stage.duo.world.ids[stage.topic]}
    one = made.OffsetFetchRequestTopics(**by, partition_indexes=indexes or [])
    wanted = None if indexes is None else [one] if indexes else []
    group = made.OffsetFetchRequestGroup(group_id=stage.group, topics=wanted)
    return made(groups=[group], require_stable=stable)
