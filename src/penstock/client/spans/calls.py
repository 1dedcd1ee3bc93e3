"""One fetch at a time per broker, over connections of their own that are kept from read to read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.fetch_session import FINAL_EPOCH, NO_SESSION
from penstock.client.consumer.offsets import READ_COMMITTED, READ_UNCOMMITTED
from penstock.client.errors import ClientError, Closed, TimedOutWaiting, link_failure
from penstock.client.settings import ConsumerSettings
from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition, Uuid
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.transport.dial import Link, LinkError

_FETCH: Final = 1
_BY_ID_FROM: Final = 13
_BY_NAME_NEWEST: Final = 12

# Only time in which somebody waits for the reply counts, so the caller keeps the time and not the link.
_LINK_PATIENCE_MS: Final = 7 * 24 * 3600 * 1000


class Wish(NamedTuple):
    """What is asked of one partition."""

    tp: TopicPartition
    topic_id: bytes
    offset: int
    leader_epoch: int
    bytes_max: int


class Call:
    """A fetch under way at one broker. Done when `reply` is; `asked_at_ms` is the caller's time."""

    __slots__ = ("asked_at_ms", "given_up", "node_id", "reply", "wishes")

    def __init__(
        self, node_id: int, wishes: Mapping[TopicPartition, Wish], reply: asyncio.Future[Any], asked_at_ms: float
    ) -> None:
        self.node_id, self.wishes, self.reply, self.asked_at_ms = node_id, wishes, reply, asked_at_ms
        self.given_up: ClientError | None = None

    def answers(self) -> tuple[FetchResponse, list[tuple[Wish, FetchResponse.PartitionData]]]:
        """The reply with what it says of each wish; ClientError when there is none."""
        try:
            reply: FetchResponse = self.reply.result()
        except LinkError as broken:
            raise link_failure(broken) from broken
        except asyncio.CancelledError:
            raise self.given_up or Closed("the reader was closed") from None
        names = {wish.topic_id: wish.tp.topic for wish in self.wishes.values()}
        found = []
        for topic in reply.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                wish = self.wishes.get(TopicPartition(name, data.partition_index))
                if wish is not None:
                    found.append((wish, data))
        return reply, found


class Caller:
    """Asks brokers for records."""

    def __init__(self, view: ClusterView, settings: ConsumerSettings) -> None:
        self._view, self._settings = view, settings
        self._isolation = READ_COMMITTED if settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        self._links: dict[int, Link] = {}

    def call(self, node_id: int, wishes: Iterable[Wish], now_ms: float) -> Call:
        """Begins a fetch. Over a link that stands the request leaves at once."""
        wanted = {wish.tp: wish for wish in wishes}
        link = self._links.get(node_id)
        if link is not None and link.up:
            try:
                return Call(node_id, wanted, self._ask(link, wanted), now_ms)
            except PenstockError:
                self.hang_up(node_id)
        dialling = asyncio.get_running_loop().create_task(self._dial_and_ask(node_id, wanted))
        dialling.add_done_callback(_look_at)
        return Call(node_id, wanted, dialling, now_ms)

    def where(self, node_id: int) -> str:
        """The address of a broker, for those who have to tell of trouble with it."""
        link = self._links.get(node_id)
        return f"{link.host}:{link.port}" if link is not None else f"broker {node_id}"

    def give_up(self, call: Call) -> None:
        """Nobody waits for it any more. What the broker sends late must not come before the next answer."""
        if not call.reply.done():
            where = self.where(call.node_id)
            call.given_up = TimedOutWaiting("no reply to a fetch came in time", where=where, retriable=True)
            call.reply.cancel()
            self.hang_up(call.node_id)

    def hang_up(self, node_id: int) -> None:
        link = self._links.pop(node_id, None)
        if link is not None:
            link.abort()

    def close(self) -> None:
        for node_id in list(self._links):
            self.hang_up(node_id)

    async def _dial_and_ask(self, node_id: int, wanted: Mapping[TopicPartition, Wish]) -> Any:
        self.hang_up(node_id)
        link = self._links[node_id] = await self._view.dedicated_link(node_id)
        return await self._ask(link, wanted)

    def _ask(self, link: Link, wanted: Mapping[TopicPartition, Wish]) -> asyncio.Future[Any]:
        version = link.newest(_FETCH)
        by_id = version >= _BY_ID_FROM and all(any(wish.topic_id) for wish in wanted.values())
        request = self._request(wanted.values(), by_id)
        reply = link.request(request, version if by_id else min(version, _BY_NAME_NEWEST), _LINK_PATIENCE_MS)
        # A read that is given up never looks at the reply, and asyncio would complain of that.
        reply.add_done_callback(_look_at)
        return reply

    def _request(self, wishes: Iterable[Wish], by_id: bool) -> FetchRequest:
        made, settings = FetchRequest, self._settings
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for wish in wishes:
            name = wish.tp.topic
            topic = topics.get(name)
            if topic is None:
                topic = made.FetchTopic(topic_id=Uuid(wish.topic_id)) if by_id else made.FetchTopic(topic=name)
                topics[name] = topic
            topic.partitions.append(
                made.FetchPartition(
                    partition=wish.tp.partition,
                    current_leader_epoch=wish.leader_epoch,
                    fetch_offset=wish.offset,
                    partition_max_bytes=wish.bytes_max,
                )
            )
        # A span is read once: there is nothing for the broker to remember.
        return made(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=self._isolation,
            session_id=NO_SESSION,
            session_epoch=FINAL_EPOCH,
            topics=list(topics.values()),
            rack_id=settings.client_rack,
        )


def _look_at(reply: asyncio.Future[Any]) -> None:
    if not reply.cancelled():
        reply.exception()
