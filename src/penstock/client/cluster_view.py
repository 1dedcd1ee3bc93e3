"""Who is in the cluster and how to reach them: links, metadata, coordinators. One view per client.

Metadata is asked for when it is needed, when somebody found it wrong (`mark_stale`), and when it is old. Whoever
waits for a refresh at the same time shares one request. Links are shared; `dedicated_link` makes one that carries a
single kind of traffic, so that a slow answer holds up nobody else.

`ask` and `ask_any` raise what the link raises (`transport.dial.LinkError`); everything else raises `ClientError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.clock import SYSTEM_CLOCK
from penstock.client.errors import (
    AuthenticationFailed,
    ClientError,
    Closed,
    NotReachable,
    TimedOutWaiting,
    UnknownTopic,
    link_failure,
    refusal,
)
from penstock.client.retry import Backoff
from penstock.client.topology import PartitionView, TopicView, Topology
from penstock.model.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, PenstockError
from penstock.model.ports import Clock
from penstock.model.version import VERSION
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse
from penstock.protocol.registry import API_VERSIONS
from penstock.protocol.wire import schema_of
from penstock.transport.dial import Foreign, Link, LinkError, LoginFailed, Silent, TimedOut, Unsupported, Untrusted
from penstock.transport.net import AsyncioNet

if TYPE_CHECKING:
    from penstock.transport.dial_security import DialSecurity

__all__ = ["ClusterView", "PartitionView", "TopicView", "default_client_id", "parse_bootstrap"]

DEFAULT_PORT = 9092
PORT_MAX = 65_535
DIAL_TIMEOUT_MS = 10_000
"""A host that swallows packets, or a port that says nothing, must not hold up the others for a whole request's time."""

SILENCES = 3
"""Before anybody has answered, so many connections that end without a byte in a row are no restart any more."""

FIND_COORDINATOR = 10
SEVERAL_KEYS_SINCE = 4
GROUP, TRANSACTION = 0, 1
"""What may be coordinated; `TRANSACTION` is found by a transactional id."""

_COORDINATED = {GROUP: "group", TRANSACTION: "transactional id"}
COORDINATORS_MAX = 20_000
"""So many are remembered; whoever looks at more than that asks again for the oldest."""
_FOR_GOOD = (INVALID_TOPIC_EXCEPTION.code, TOPIC_AUTHORIZATION_FAILED.code)


def parse_bootstrap(text: str | Sequence[str]) -> list[tuple[str, int]]:
    """`a:9092,b` becomes [("a", 9092), ("b", 9092)]; ValueError says which part is wrong."""
    found = []
    pieces = text.split(",") if isinstance(text, str) else text
    for part in (piece.strip() for piece in pieces):
        if not part:
            continue
        _, marked, rest = part.partition("://")
        if marked:
            raise ValueError(f"{part!r} is no address: nothing stands before host:port; write {rest.partition('/')[0]}")
        host, colon, port = part.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = part, str(DEFAULT_PORT)
        if not port.isdigit():
            raise ValueError(f"{part!r} is no address: expected host:port")
        if not 0 < int(port) <= PORT_MAX:
            raise ValueError(f"{part!r} is no address: ports go from 1 to {PORT_MAX}")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ValueError("no bootstrap address was given")
    return found


class ClusterView:
    """Links to the brokers of one cluster and what they said about it. Close it, or use it with `async with`."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        timeout_ms: int = 30_000,
        client_id: str = "penstock",
        metadata_max_age_ms: int = 300_000,
        backoff_ms: int = 100,
        backoff_max_ms: int = 1_000,
        clock: Clock | None = None,
        security: DialSecurity | None = None,
    ) -> None:
        """`security` is None for plaintext; a view has its own, because it belongs to one loop."""
        self._security = security
        self._bootstrap, self._timeout_ms, self._client_id = parse_bootstrap(bootstrap), timeout_ms, client_id
        self._max_age_ms = metadata_max_age_ms
        self._clock = clock or SYSTEM_CLOCK
        self._backoff = Backoff(backoff_ms, backoff_max_ms)
        self._net: AsyncioNet | None = None
        self._links: dict[tuple[str, int], Link] = {}
        self._dialling: dict[tuple[str, int], asyncio.Task[Link]] = {}
        self._topology = Topology()
        self._coordinators: dict[tuple[int, str], int] = {}
        # The levels that the cluster's features are finalized at, as the newest word of a broker has them.
        self._features: dict[str, int] = {}
        self._features_epoch = -1
        self._listeners: list[Callable[[], None]] = []
        # Refreshing: topics that are kept fresh, the one request under way, and what it asks for.
        self._followed: dict[str, None] = {}
        self._to_create: set[str] = set()
        self._refresh: asyncio.Task[None] | None = None
        self._refresh_covers: frozenset[str] = frozenset()
        self._asked_at_ms = float("-inf")
        self._age_timer: asyncio.TimerHandle | None = None
        self._closed = False
        # How often in a row an address ended the connection without a byte, while nobody had answered at all yet.
        self._silences = 0

    async def __aenter__(self) -> ClusterView:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all shared links. Dedicated ones belong to whoever asked for them."""
        self._closed = True
        if self._age_timer is not None:
            self._age_timer.cancel()
            self._age_timer = None
        for task in (self._refresh, *self._dialling.values()):
            if task is not None:
                task.cancel()
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._listeners.clear()

    # Asking.

    async def ask_any(self, message: object) -> Any:
        """The reply of whichever broker answers first: those linked already, then all that are known."""
        return await self._ask_any(lambda _: message)

    async def _ask_any(self, make: Callable[[Link], object]) -> Any:
        """The same for a message that hangs on what the broker understands."""
        standing = [address for address, link in self._links.items() if link.up]
        addresses = [*standing, *self._bootstrap, *self._topology.addresses.values()]
        failure: LinkError | None = None
        for address in dict.fromkeys(addresses):
            try:
                return await self._ask(address, make)
            except LoginFailed:
                raise  # every broker knows the same users, and failures are counted
            except LinkError as broken:
                # One address that is wrong for good does not rule out the others.
                failure = broken if failure is None or isinstance(failure, (Foreign, Untrusted)) else failure
        assert failure is not None, "there is at least one bootstrap address"
        raise failure

    async def ask(self, node_id: int, message: object) -> Any:
        """The reply of one broker, known from metadata."""
        return await self._ask(await self._address(node_id), lambda _: message)

    def learn_topics(self, reply: MetadataResponse) -> None:
        """Takes over what a reply says that somebody else has asked for and read; of other topics it says nothing."""
        self._absorb(reply, of_all=False)

    async def metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        """Metadata of the named topics, of all for None; never creates one."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        reply: MetadataResponse = await self.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        self._absorb(reply, of_all=wanted is None)
        return reply

    # Links.

    async def link(self, node_id: int) -> Link:
        """The shared, negotiated link to a broker; NotReachable."""
        return await self._linked(node_id, self._shared)

    async def dedicated_link(self, node_id: int) -> Link:
        """A connection of the caller's own, who closes it."""
        return await self._linked(node_id, self._dial)

    async def _linked(self, node_id: int, dial: Callable[[tuple[str, int]], Any]) -> Link:
        try:
            found: Link = await dial(await self._address(node_id))
        except LinkError as broken:
            raise link_failure(broken) from broken
        except ClientError:
            raise
        except PenstockError as unknown:
            raise NotReachable(str(unknown), retriable=True) from unknown
        return found

    # Topics.

    async def topic(self, name: str, *, create: bool = False, timeout_ms: float | None = None) -> TopicView:
        """A topic that has leaders. Waits for it up to `timeout_ms` (the view's own if None), then UnknownTopic.

        With `create` brokers are asked to make it. Names that can never be, or that access rules hide, raise at once.
        """
        found = self._topology.topics.get(name)
        if found is not None and found.led and name not in self._topology.stale:
            return found
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._clock.monotonic_ms() + limit_ms
        if create:
            self._to_create.add(name)
        failures = 0
        failure: ClientError | None = None
        try:
            while True:
                try:
                    await self._refreshed((name,), deadline_ms)
                    failure = None
                except ClientError as broken:
                    failure = broken
                found = self._topology.topics.get(name)
                if failure is None and found is not None and found.led:
                    return found
                code = self._topology.refusals.get(name, 0)
                if failure is None and code in _FOR_GOOD:
                    raise refusal(code, None, f"topic {name!r}")
                if isinstance(failure, (Closed, NotReachable, AuthenticationFailed)) and not failure.retriable:
                    raise failure
                failures += 1
                delay_ms = self._backoff.delay_ms(failures)
                if self._clock.monotonic_ms() + delay_ms >= deadline_ms:
                    raise failure or _never_came(name, found, limit_ms)
                await asyncio.sleep(delay_ms / 1000)
        finally:
            self._to_create.discard(name)
            if name not in self._topology.topics:
                self._followed.pop(name, None)

    async def topics(self, names: Sequence[str] | None) -> dict[str, TopicView]:
        """What brokers say now of the named topics, of all for None; those that do not exist are left out."""
        try:
            reply = await self.metadata(names)
        except LinkError as broken:
            raise link_failure(broken) from broken
        wanted = [topic.name for topic in reply.topics if topic.name is not None]
        return {name: found for name in wanted if (found := self._topology.topics.get(name)) is not None}

    def cached(self, name: str) -> TopicView | None:
        return self._topology.topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._topology.names.get(topic_id)

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The leader as far as is known; None for none."""
        return self._topology.leader_of(topic, partition)

    @property
    def generation(self) -> int:
        """Rises with every change seen."""
        return self._topology.generation

    @property
    def nodes(self) -> list[int]:
        """The brokers that are known."""
        return sorted(self._topology.addresses)

    def rack_of(self, node_id: int) -> str | None:
        return self._topology.racks.get(node_id)

    def follow(self, *names: str) -> None:
        """Keeps these topics fresh from now on."""
        self._followed.update(dict.fromkeys(names))

    def unfollow(self, *names: str) -> None:
        for name in names:
            self._followed.pop(name, None)

    def when_changed(self, callback: Callable[[], None]) -> None:
        """Calls back after every change of the topology."""
        self._listeners.append(callback)

    def forget(self, topic: str) -> None:
        """Somebody has deleted it."""
        self._topology.drop(topic)
        self._followed.pop(topic, None)

    def mark_stale(self, topic: str | None = None) -> None:
        """Somebody was told that what is known of a topic (of all for None) is wrong; asks nobody by itself."""
        self._topology.mark_stale(topic)

    def learned(
        self, topic: str, partition: int, leader: int, epoch: int, endpoint: tuple[str, int] | None = None
    ) -> bool:
        """A broker's hint at who leads now; True when it was news. Older epochs than the known one are ignored."""
        if not self._topology.learn(topic, partition, leader, epoch, endpoint):
            return False
        self._tell()
        return True

    async def refreshed(self) -> None:
        """Fresh metadata of everything that is followed; one request for all who wait. ClientError when none came."""
        await self._refreshed((), self._clock.monotonic_ms() + self._timeout_ms)

    async def _refreshed(self, names: tuple[str, ...], deadline_ms: float) -> None:
        self.follow(*names)
        while True:
            if self._closed:
                raise Closed("the client is closed")
            task, covered = self._refresh, self._refresh_covers.issuperset(names)
            if task is None:
                task, covered = self._start_refresh(), True
            left_s = max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000
            try:
                # The one who started it may give up; the others still want the answer.
                await asyncio.wait_for(asyncio.shield(task), left_s)
            except TimeoutError:
                raise TimedOutWaiting("no broker answered a metadata request in time", retriable=True) from None
            except ClientError:
                if covered:
                    raise
            if covered:
                return

    def _start_refresh(self) -> asyncio.Task[None]:
        self._refresh_covers = frozenset(self._followed)
        self._refresh = task = asyncio.get_running_loop().create_task(self._do_refresh())
        task.add_done_callback(self._refresh_done)
        return task

    def _refresh_done(self, task: asyncio.Task[None]) -> None:
        self._refresh = None
        if not task.cancelled():
            task.exception()  # whoever waits has it too; nobody may be left

    async def _do_refresh(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._refresh_covers <= self._topology.topics.keys():
            # Nothing new is asked for: a crowd of complaints must not become a crowd of requests.
            await asyncio.sleep(max(self._asked_at_ms + self._backoff.first_ms - now_ms, 0) / 1000)
        self._asked_at_ms = self._clock.monotonic_ms()
        # Only what somebody waits for is asked for with a wish: others may have been deleted, and are to stay so.
        to_create = self._refresh_covers & self._to_create
        others = self._refresh_covers - to_create
        try:
            if to_create:
                await self._learn(sorted(to_create), create=True)
            if others or not to_create:
                await self._learn(sorted(others))
        except LinkError as broken:
            raise link_failure(broken) from broken
        self._set_age_timer()

    async def _learn(self, names: Sequence[str], *, create: bool = False) -> None:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        reply = await self.ask_any(MetadataRequest(topics=topics, allow_auto_topic_creation=create))
        self._absorb(reply, of_all=False)

    def _set_age_timer(self) -> None:
        if self._age_timer is not None:
            self._age_timer.cancel()
        if self._followed and not self._closed:
            loop = asyncio.get_running_loop()
            self._age_timer = loop.call_later(self._max_age_ms / 1000, self._too_old)

    def _too_old(self) -> None:
        self._age_timer = None
        if self._closed:
            return
        if self._refresh is None:
            self._start_refresh().add_done_callback(lambda _: self._set_age_timer())

    def _absorb(self, reply: MetadataResponse, *, of_all: bool) -> None:
        gone = self._topology.absorb(reply, of_all=of_all)
        for name in gone:
            self._followed.pop(name, None)
        self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()

    # Coordinators.

    async def coordinator(self, name: str, kind: int = GROUP) -> int:
        """The broker that coordinates a group; asks once and remembers. Raises what the broker refuses.

        With `kind` TRANSACTION the name is a transactional id.
        """
        known = self._coordinators.get((kind, name))
        if known is not None:
            return known

        def request(link: Link) -> FindCoordinatorRequest:
            if link.newest(FIND_COORDINATOR) >= SEVERAL_KEYS_SINCE:
                return FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
            return FindCoordinatorRequest(key_type=kind, key=name)

        try:
            reply = await self._ask_any(request)
        except LinkError as broken:
            raise link_failure(broken) from broken
        found = reply.coordinators[0] if reply.coordinators else reply
        if found.error_code:
            raise refusal(found.error_code, found.error_message, f"{_COORDINATED[kind]} {name!r}")
        self._topology.addresses[found.node_id] = (found.host, found.port)
        self.learn_coordinator(name, found.node_id, kind)
        return int(found.node_id)

    def learn_coordinator(self, name: str, node_id: int, kind: int = GROUP) -> None:
        """A broker has said that it coordinates a group."""
        self._coordinators[kind, name] = node_id
        while len(self._coordinators) > COORDINATORS_MAX:
            del self._coordinators[next(iter(self._coordinators))]

    def forget_coordinator(self, name: str, kind: int = GROUP) -> None:
        self._coordinators.pop((kind, name), None)

    def finalized(self, feature: str) -> int:
        """The level of a feature as brokers told it when they were last dialled; 0 for none."""
        return self._features.get(feature, 0)

    # Underneath.

    async def _address(self, node_id: int) -> tuple[str, int]:
        if node_id not in self._topology.addresses:
            await self.metadata([])
        address = self._topology.addresses.get(node_id)
        if address is None:
            raise PenstockError(f"broker {node_id} is not in the cluster's metadata")
        return address

    async def _ask(self, address: tuple[str, int], make: Callable[[Link], object]) -> Any:
        link = await self._shared(address)
        message = make(link)
        try:
            return await link.request(message, _version(link, message), self._timeout_ms)
        except TimedOut:
            # Brokers answer the requests of a connection in order: whatever comes next would wait behind this one.
            link.abort()
            raise

    async def _shared(self, address: tuple[str, int]) -> Link:
        """The standing link, or the one that somebody is dialling already: two would leave one behind."""
        link = self._links.get(address)
        if link is not None and link.up:
            return link
        task = self._dialling.get(address)
        if task is None:
            task = self._dialling[address] = asyncio.get_running_loop().create_task(self._dial(address))
            task.add_done_callback(lambda done: self._dialled(address, done))
        return await asyncio.shield(task)

    def _dialled(self, address: tuple[str, int], task: asyncio.Task[Link]) -> None:
        self._dialling.pop(address, None)
        if not task.cancelled() and task.exception() is None:
            if self._closed:
                task.result().close()
            else:
                self._links[address] = task.result()

    async def _dial(self, address: tuple[str, int]) -> Link:
        if self._net is None:
            self._net = AsyncioNet(asyncio.get_running_loop())
        timeout_ms = min(self._timeout_ms, DIAL_TIMEOUT_MS)
        try:
            link: Link = await self._met(self._net, address, timeout_ms)
        except Silent as silent:
            raise self._suspected(silent) from None
        self._silences = 0
        return link

    async def _met(self, net: AsyncioNet, address: tuple[str, int], timeout_ms: int) -> Link:
        """A link whose peer has said what it serves, and has taken our login if there is one."""
        link = await net.dial(*address, timeout_ms, self._security)
        link.client_id = self._client_id
        try:
            await link.negotiate("penstock", VERSION, timeout_ms)
        except LinkError as broken:
            link.abort()
            if not self._topology.addresses and not isinstance(broken, (Unsupported, Untrusted, LoginFailed, Silent)):
                broken.why += f"; is this a Kafka port? `penstock doctor -b {link.host}:{link.port}` finds out"
            raise
        except BaseException:
            link.abort()
            raise
        if link.features_epoch >= self._features_epoch:
            self._features, self._features_epoch = link.features, link.features_epoch
        return link

    def _suspected(self, silent: Silent) -> LinkError:
        """A broker that is being stopped ends connections, too; a port of another kind does it every time."""
        if self._topology.addresses:
            return silent
        self._silences += 1
        if self._silences < SILENCES:
            return silent
        return Foreign(silent.host, silent.port, silent.why)


def _version(link: Link, message: object) -> int:
    key = schema_of(type(message)).key
    return link.newest(key) if key != API_VERSIONS else 0


def _never_came(name: str, found: TopicView | None, limit_ms: float) -> ClientError:
    where = f"topic {name!r}"
    if found is None:
        return UnknownTopic(f"it does not exist (asked for {limit_ms:.0f} ms)", where=where)
    return TimedOutWaiting(f"none of its partitions has a leader after {limit_ms:.0f} ms", where=where, retriable=True)


def default_client_id() -> str:
    """Names the person behind a command, so that broker logs can tell them apart."""
    with contextlib.suppress(KeyError, OSError):
        return f"penstock-cli-{getpass.getuser()}"
    return "penstock-cli"
