"""What is counted about the traffic of topics: plain integers on one object a topic, read at scrape.

Every hosted partition of a topic holds the same object, so a batch costs an addition where it is at hand anyway. A
topic that leaves this node takes its series with it; what it had counted stays in the sums, which never fall.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.model.ids import Uuid


class TopicTraffic:
    """One topic on this node. `hosted` is how many of its partitions are here."""

    __slots__ = (
        "batches_in", "bytes_in", "bytes_out", "fetches", "hosted", "records_in", "refused_in", "refused_out", "topic"
    )  # fmt: skip

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.hosted = 0
        self.batches_in = self.bytes_in = self.records_in = self.refused_in = 0
        self.fetches = self.bytes_out = self.refused_out = 0

    def add(self, other: TopicTraffic) -> None:
        """Counts what another topic has counted too."""
        self.batches_in += other.batches_in
        self.bytes_in += other.bytes_in
        self.records_in += other.records_in
        self.refused_in += other.refused_in
        self.fetches += other.fetches
        self.bytes_out += other.bytes_out
        self.refused_out += other.refused_out


class Traffic:
    """All topics on this node, and what those that are gone had counted."""

    __slots__ = ("_past", "_topics")

    def __init__(self) -> None:
        self._topics: dict[Uuid, TopicTraffic] = {}
        self._past = TopicTraffic("")

    def __iter__(self) -> Iterator[TopicTraffic]:
        return iter(self._topics.values())

    def __len__(self) -> int:
        return len(self._topics)

    def taken_up(self, topic_id: Uuid, topic: str) -> TopicTraffic:
        """A partition of the topic has come to this node: where to count."""
        traffic = self._topics.get(topic_id)
        if traffic is None:
            traffic = self._topics[topic_id] = TopicTraffic(topic)
        traffic.hosted += 1
        return traffic

    def dropped(self, topic_id: Uuid) -> None:
        """A partition of the topic has left this node."""
        traffic = self._topics[topic_id]
        traffic.hosted -= 1
        if not traffic.hosted:
            del self._topics[topic_id]
            self._past.add(traffic)

    def past(self) -> TopicTraffic:
        """What topics had counted that are gone, as of now."""
        past = TopicTraffic("")
        past.add(self._past)
        return past
