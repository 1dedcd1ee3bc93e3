"""All topics of a cluster, again and again: only those that differ from the last time are decoded.

Metadata of ten thousand topics is megabytes, and from one look to the next hardly any of it changes. So the bytes of
each topic are kept beside what they mean, and held against the next reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import error as struct_error
from typing import Final, NamedTuple

from penstock.client.admin.session import Session
from penstock.client.admin.topics import TopicInfo, list_topics, topic_info
from penstock.client.errors import ClientError
from penstock.protocol.codec import encode
from penstock.protocol.frame import decode_response
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse
from penstock.protocol.primitives import read_uvarint, uvarint
from penstock.protocol.wire import Malformed

_METADATA: Final = 3
_VERSIONS: Final = (12, 13)
"""Those whose layout is known here; with others all is decoded each time."""


class _Known(NamedTuple):
    raw: bytes
    name: str
    info: TopicInfo


class WatchedTopics:
    """One for each who watches; it keeps the bytes of the last reply."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: list[_Known] = []
        self._places: dict[str, int] = {}
        self._head = b""
        self._topics: dict[str, TopicInfo] = {}

    async def look(self) -> Mapping[str, TopicInfo]:
        """All topics by name. The very same mapping as before when nothing has changed, and each topic that has not is
        the very same object."""
        for node in self._session.view.nodes:
            try:
                version = await self._session.newest(node, _METADATA)
                if version not in _VERSIONS:
                    break
                body = encode(MetadataRequest(topics=None, allow_auto_topic_creation=False), version)
                frame = await self._session.encoded(node, _METADATA, version, body, bytes)
            except ClientError:
                continue  # another one may know as much
            try:
                return self._compare(frame, version)
            except (Malformed, struct_error, IndexError, UnicodeDecodeError):
                break  # with fields that are not known here, perhaps; if it is broken, that is told by the plain way
        topics = {topic.name: topic for topic in await list_topics(self._session, internal=True)}
        if topics != self._topics:
            self._topics = topics
        return self._topics

    def _compare(self, frame: bytes, version: int) -> Mapping[str, TopicInfo]:
        begin = _topics_at(frame)
        count, position = read_uvarint(frame, begin)
        head, known, at = bytes(frame[9:begin]), self._known, 0
        told: list[_Known | bytes] = []
        for _ in range(count - 1):
            if at < len(known) and frame.startswith(known[at].raw, position):
                told.append(known[at])
                position += len(known[at].raw)
                at += 1
                continue
            name, end = _topic_end(frame, position)
            raw, position = bytes(frame[position:end]), end
            place = self._places.get(name)
            same = place is not None and known[place].raw == raw
            told.append(known[place] if same and place is not None else raw)
            at = at + 1 if place is None else place + 1
        changed = [each for each in told if isinstance(each, bytes)]
        gone = len(told) - len(changed) < len(known)
        if not changed and not gone and head == self._head:
            return self._topics
        # A reply of the changed ones alone, between the head and the tail of the whole one.
        small = b"".join((frame[:begin], uvarint(len(changed) + 1), *changed, frame[position:]))
        _, reply = decode_response(small, _METADATA, version)
        self._learn(told, reply)
        self._head = head
        return self._topics

    def _learn(self, told: list[_Known | bytes], reply: MetadataResponse) -> None:
        self._session.view.learn_topics(reply)
        anew = iter(reply.topics)
        self._known = []
        for each in told:
            if isinstance(each, bytes):
                info = topic_info(next(anew))
                self._known.append(_Known(each, info.name, info))
            else:
                self._known.append(each)
        for name in self._places.keys() - {each.name for each in self._known}:
            self._session.view.forget(name)
        self._places = {each.name: at for at, each in enumerate(self._known)}
        self._topics = {each.name: each.info for each in sorted(self._known, key=lambda each: each.name)}


def _topics_at(frame: bytes) -> int:
    """Where the topics of a reply begin: behind its header, how long we were throttled, the brokers and the cluster."""
    if frame[4]:
        raise Malformed("Metadata: tagged fields in the header of a reply")
    count, position = read_uvarint(frame, 9)
    for _ in range(count - 1):
        position = _after_text(frame, position + 4)  # its id, its host
        position = _after_text(frame, position + 4)  # its port, its rack
        position = _after_tags(frame, position)
    return _after_text(frame, position) + 4  # the cluster's id, the controller


def _topic_end(frame: bytes, position: int) -> tuple[str, int]:
    """The name of a topic and where it ends."""
    size, begin = read_uvarint(frame, position + 2)
    position = begin + max(size - 1, 0)
    name = frame[begin:position].decode()
    count, position = read_uvarint(frame, position + 17)  # its id, whether it is internal
    for _ in range(count - 1):
        position += 14  # error, index, leader, epoch
        for _ in range(3):  # replicas, in-sync ones, offline ones
            length, position = read_uvarint(frame, position)
            position += 4 * max(length - 1, 0)
        position = _after_tags(frame, position)
    return name, _after_tags(frame, position + 4)


def _after_text(frame: bytes, position: int) -> int:
    size, position = read_uvarint(frame, position)
    return position + max(size - 1, 0)


def _after_tags(frame: bytes, position: int) -> int:
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position
