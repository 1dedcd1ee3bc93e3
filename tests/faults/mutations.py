"""Valid requests of every served API, and ways to break them."""

from __future__ import annotations

import random
import struct

from penstock.kernels import Record
from penstock.protocol.batch import build_batch
from penstock.protocol.frame import encode_request
from penstock.protocol.registry import APIS
from penstock.server.dispatch import SERVED

TOPIC = "fuzzed"
_HUGE = (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff" * 10)


def batches() -> list[bytes]:
    records = [Record(i, 1_700_000_000_000 + i, b"key %d" % i, b"value %d" % i, (("h", b"x"),)) for i in range(5)]
    return [build_batch(records, codec=codec) for codec in range(5)]


def seeds(chance: random.Random) -> list[bytes]:
    """Frames (without the size) that a healthy client might send, in every version that is served."""
    found = []
    for api in APIS.values():
        if api.name not in SERVED:
            continue
        for version in range(api.min, api.max + 1):
            message = api.request()()
            _fill(api.name, message, version, chance)
            found.append(encode_request(chance.randrange(1 << 31), "fuzz", message, version)[4:])
    return found


def _fill(name: str, message: object, version: int, chance: random.Random) -> None:
    made = type(message)
    if name == "Produce":
        message.acks, message.timeout_ms = 1, 1_000  # type: ignore[attr-defined]
        data = made.PartitionProduceData(index=0, records=chance.choice(batches()))  # type: ignore[attr-defined]
        message.topic_data = [made.TopicProduceData(name=TOPIC, partition_data=[data])]  # type: ignore[attr-defined]
    elif name == "Fetch":
        wanted = made.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 16)  # type: ignore[attr-defined]
        message.topics = [made.FetchTopic(topic=TOPIC, partitions=[wanted])]  # type: ignore[attr-defined]
    elif name == "ListOffsets":
        wanted = made.ListOffsetsPartition(partition_index=0, timestamp=-1)  # type: ignore[attr-defined]
        message.topics = [made.ListOffsetsTopic(name=TOPIC, partitions=[wanted])]  # type: ignore[attr-defined]
    elif name == "Metadata":
        message.topics = [made.MetadataRequestTopic(name=TOPIC)]  # type: ignore[attr-defined]
    elif name == "CreateTopics":
        message.topics = [made.CreatableTopic(name="refused/name", num_partitions=1, replication_factor=1)]  # type: ignore[attr-defined]
    elif name == "DescribeConfigs":
        message.resources = [made.DescribeConfigsResource(resource_type=2, resource_name=TOPIC)]  # type: ignore[attr-defined]


def mutate(frame: bytes, chance: random.Random) -> bytes:
    """The frame with its size, broken in one to three ways. The size may lie too."""
    body = bytearray(frame)
    size: int | None = None
    for _ in range(chance.randint(1, 3)):
        match chance.randrange(8):
            case 0 if body:
                body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            case 1 if body:
                body[chance.randrange(len(body))] = chance.randrange(256)
            case 2:
                del body[chance.randrange(len(body) + 1) :]
            case 3:
                at = chance.randrange(len(body) + 1)
                body[at:at] = chance.choice(_HUGE)
            case 4:
                at = chance.randrange(len(body) + 1)
                body[at : at + 4] = chance.choice(_HUGE)
            case 5:
                body[2:4] = struct.pack(">h", chance.choice([-1, 0, 1, 12, 13, 14, 99, 32_767, -32_768]))
            case 6:
                body[0:2] = struct.pack(">h", chance.choice([-1, *range(95), 32_767]))
            case _:
                size = chance.choice([0, -1, 3, len(body) + 1, len(body) * 2, 104_857_601, 2**31 - 1, -(2**31)])
    return struct.pack(">i", len(body) if size is None else size) + bytes(body)
