"""The ends of very many partitions, for whoever knows who leads them: one request a leader, and little made of it.

Whoever watches a cluster asks the same again and again. A question is encoded once for as long as the very same
partitions are asked for, and an answer is read in one go: its partitions have one size, and come in the order in which
they were asked for. An answer that looks otherwise is read as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from penstock.client.admin.offsets import list_offsets
from penstock.client.admin.session import Session
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from penstock.protocol.codec import encode
from penstock.protocol.frame import decode_response
from penstock.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.protocol.primitives import read_uvarint
from penstock.protocol.wire import Malformed

_LEADERS_AT_ONCE = 20
"""Replies of all leaders of a large cluster at once would be read in one go, and hold up everything else."""
_LIST_OFFSETS: Final = 2
_FLEXIBLE_SINCE: Final = 6
_ENTRY: Final = Struct(">ihqqiB")
"""A partition of a flexible reply: index, error, timestamp, offset, leader epoch, and how many tagged fields follow."""

Ends = dict[TopicPartition, int]


class _AskedTopic(NamedTuple):
    name: bytes
    items: list[TopicPartition]


class _Question(NamedTuple):
    """What one broker is asked, encoded, and by what its answer is read."""

    about: Collection[TopicPartition]
    version: int
    body: bytes
    topics: list[_AskedTopic]


class ManyEnds:
    """Remembers its questions, by broker and by what is asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._questions: dict[tuple[int, int, bool], _Question] = {}

    async def of_led(
        self, led: Mapping[int, Collection[TopicPartition]], when: int, *, read_committed: bool = False
    ) -> Ends:
        """Offsets by partition. Those whose leader is another by now are asked for anew, with new metadata; who cannot
        be asked at all is left out."""
        found: Ends = {}
        nodes = sorted(led)
        for key in [key for key in self._questions if key[0] not in led]:
            del self._questions[key]
        for at in range(0, len(nodes), _LEADERS_AT_ONCE):
            asked = nodes[at : at + _LEADERS_AT_ONCE]
            for told in await asyncio.gather(*(self._of_one(node, led[node], when, read_committed) for node in asked)):
                found.update(told)
        missing = [item for items in led.values() for item in items if item not in found]
        if missing:
            again = await list_offsets(self._session, dict.fromkeys(missing, when), read_committed=read_committed)
            found.update((item, info.offset) for item, info in again.done.items())
        return found

    async def _of_one(self, node: int, items: Collection[TopicPartition], when: int, read_committed: bool) -> Ends:
        try:
            version = await self._session.newest(node, _LIST_OFFSETS)
            question = self._question(node, items, when, read_committed, version)
            if version < _FLEXIBLE_SINCE:
                return _plain(await self._session.broker(node, _request(self._session, items, when, read_committed)))
            return await self._session.encoded(
                node, _LIST_OFFSETS, version, question.body, lambda frame: _read(bytes(frame), question)
            )
        except ClientError:
            return {}

    def _question(
        self, node: int, items: Collection[TopicPartition], when: int, read_committed: bool, version: int
    ) -> _Question:
        known = self._questions.get((node, when, read_committed))
        if known is None or known.about is not items or known.version != version:
            known = _question(items, version, encode(_request(self._session, items, when, read_committed), version))
            self._questions[node, when, read_committed] = known
        return known


def _by_topic(items: Collection[TopicPartition]) -> dict[str, list[TopicPartition]]:
    of_topic: dict[str, list[TopicPartition]] = {}
    for item in items:
        of_topic.setdefault(item.topic, []).append(item)
    return of_topic


def _request(
    session: Session, items: Collection[TopicPartition], when: int, read_committed: bool
) -> ListOffsetsRequest:
    made = ListOffsetsRequest
    return made(
        replica_id=-1,
        isolation_level=int(read_committed),
        topics=[
            made.ListOffsetsTopic(
                name=name,
                partitions=[
                    made.ListOffsetsPartition(partition_index=each.partition, timestamp=when) for each in partitions
                ],
            )
            for name, partitions in _by_topic(items).items()
        ],
        timeout_ms=session.request_timeout_ms,
    )


def _question(items: Collection[TopicPartition], version: int, body: bytes) -> _Question:
    topics = [_AskedTopic(name.encode(), partitions) for name, partitions in _by_topic(items).items()]
    return _Question(items, version, body, topics)


def _plain(reply: ListOffsetsResponse) -> Ends:
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in reply.topics
        for each in topic.partitions
        if not each.error_code
    }


def _read(frame: bytes, question: _Question) -> Ends:
    try:
        found = _read_in_one_go(frame, question.topics)
    except (struct_error, IndexError, UnicodeDecodeError) as broken:
        raise Malformed(f"ListOffsets: {broken}") from None
    if found is None:
        _, reply = decode_response(frame, _LIST_OFFSETS, question.version)
        return _plain(reply)
    return found


def _read_in_one_go(frame: bytes, topics: list[_AskedTopic]) -> Ends | None:
    """None for a reply with fields that this does not know."""
    found: Ends = {}
    # Behind the correlation id: no tagged fields, how long we were throttled, the topics.
    if frame[4]:
        return None
    count, position = read_uvarint(frame, 9)
    for at in range(count - 1):
        size, position = read_uvarint(frame, position)
        name = bytes(frame[position : position + size - 1])
        length, position = read_uvarint(frame, position + size - 1)
        end = position + (length - 1) * _ENTRY.size
        entries = list(_ENTRY.iter_unpack(frame[position:end]))
        if frame[end]:
            return None
        position = end + 1
        asked = topics[at] if at < len(topics) else None
        same = asked is not None and asked.name == name and len(asked.items) == len(entries)
        items = (
            asked.items if same and asked is not None else [TopicPartition(name.decode(), each[0]) for each in entries]
        )
        for item, (index, error, _, offset, _, tags) in zip(items, entries, strict=True):
            if tags or item.partition != index:
                return None
            if not error:
                found[item] = offset
    if frame[position] or position + 1 != len(frame):
        return None
    return found
