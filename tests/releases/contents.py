"""What such a directory holds, and how one is made: `python -m tests.releases.contents tests/releases/NAME.tar.xz`."""

from __future__ import annotations

import asyncio
import sys
import tarfile
import tempfile
from typing import Any

from penstock.client.admin import Admin
from penstock.client.cluster_view import ClusterView
from penstock.kernels import Record
from penstock.model.ids import uuid_parse
from penstock.protocol.batch import build_batch, read_records
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.testing import broker

START_MS = 1_700_000_000_000
TOPIC, TRIMMED_BEFORE = "orders", 3
CONFIGS = {"retention.ms": "-1", "segment.bytes": "1048576"}
CODECS = range(5)


def records(codec: int) -> list[Record]:
    rows = [Record(i, START_MS + i, b"key %d" % i, b"value %d of codec %d" % (i, codec), ()) for i in range(3)]
    return [*rows, Record(3, START_MS + 3, None, None, (("header", b"1"), ("null", None)))]


async def write(bootstrap: str) -> None:
    async with ClusterView(bootstrap) as view, Admin(bootstrap_servers=bootstrap) as admin:
        topic_id = uuid_parse(await admin.create_topic(TOPIC, 2, 1, CONFIGS))
        sequence = 0
        for codec in CODECS:
            batch = build_batch(records(codec), codec=codec, producer_id=77, producer_epoch=1, base_sequence=sequence)
            sequence += len(records(codec))
            data = ProduceRequest.PartitionProduceData(index=0, records=batch)
            topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[data])
            reply = await view.ask(1, ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]))
            assert reply.responses[0].partition_responses[0].error_code == 0
        await admin.trim_topic(TOPIC, {0: TRIMMED_BEFORE})
        await admin.create_topic("emptied", 1, 1, {"cleanup.policy": "compact"})


async def read(bootstrap: str) -> dict[str, Any]:
    """Everything that must be the same wherever the directory is opened."""
    async with ClusterView(bootstrap) as view, Admin(bootstrap_servers=bootstrap) as admin:
        topics = list((await admin.describe_topics([TOPIC, "emptied"])).checked().values())
        asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=START_MS + 2)
        by_time = ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[asked])
        found = await view.ask(1, ListOffsetsRequest(replica_id=-1, topics=[by_time]))
        wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=TRIMMED_BEFORE, partition_max_bytes=1 << 20)
        topic = FetchRequest.FetchTopic(topic_id=uuid_parse(topics[0].id), partitions=[wanted])
        fetched = await view.ask(1, FetchRequest(max_wait_ms=100, min_bytes=1, topics=[topic]))
        return {
            "topics": {t.name: (t.id, t.configs, [(p.start, p.end) for p in t.partitions]) for t in topics},
            "by time": found.topics[0].partitions[0].offset,
            "records": _rows(bytes(fetched.responses[0].partitions[0].records)),
        }


def _rows(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    rows = []
    while data:
        size = int.from_bytes(data[8:12], "big") + 12
        # A batch comes whole, also when its first records are deleted.
        rows += [(r.offset, r.key, r.value) for r in read_records(data[:size]) if r.offset >= TRIMMED_BEFORE]
        data = data[size:]
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        with broker(data_dir=scratch) as running:
            asyncio.run(write(running.bootstrap_servers))
        with tarfile.open(sys.argv[1], "w:xz") as archive:
            archive.add(f"{scratch}/node-1", arcname="node-1")


if __name__ == "__main__":
    main()
