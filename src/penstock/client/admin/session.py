"""Asking with patience: the right broker, another try where that can help, one outcome per item."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from penstock.client.clock import SYSTEM_CLOCK
from penstock.client.cluster_view import GROUP
from penstock.client.errors import BrokerRefused, ClientError, NotReachable, UnknownTopic, link_failure, refusal
from penstock.client.retry import Backoff
from penstock.model.errors import (
    BROKER_NOT_AVAILABLE,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    REBALANCE_IN_PROGRESS,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
    UNSUPPORTED_VERSION,
    PenstockError,
)
from penstock.model.ids import TopicPartition
from penstock.protocol.wire import schema_of
from penstock.transport.dial import Foreign, LinkError, Unreachable, Unsupported

if TYPE_CHECKING:
    from penstock.client.cluster_view import ClusterView
    from penstock.model.ports import Clock
    from penstock.protocol.messages.metadata import MetadataResponse

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

# What a moment mends. UNKNOWN_TOPIC_OR_PARTITION is retriable to a producer, but to somebody who asks about a topic
# it is the answer; and after REQUEST_TIMED_OUT a change may have happened, so doing it again is not ours to decide.
TRANSIENT = {
    BROKER_NOT_AVAILABLE,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    REBALANCE_IN_PROGRESS,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_LEADER_EPOCH,
    UNSTABLE_OFFSET_COMMIT,
}
_ABSENT = (UNKNOWN_TOPIC_OR_PARTITION.code, UNKNOWN_TOPIC_ID.code)

Outcome: TypeAlias = "V | ClientError"


class Results(Generic[K, V]):
    """What worked (`done`) and what did not (`failed`), by item."""

    __slots__ = ("done", "failed")

    def __init__(self) -> None:
        self.done: dict[K, V] = {}
        self.failed: dict[K, ClientError] = {}

    def checked(self) -> dict[K, V]:
        """What worked, if all of it did; else the first failure is raised."""
        for failure in self.failed.values():
            raise failure
        return self.done

    def __repr__(self) -> str:
        return f"Results(done={self.done!r}, failed={self.failed!r})"


class NobodyThere(NotReachable):
    """Not one broker of the cluster takes a connection. Waiting for that is up to whoever asks."""


class Session:
    """A cluster view with patience: how long a call may take, and how it waits before it tries again."""

    def __init__(
        self,
        view: ClusterView,
        *,
        timeout_ms: int = 60_000,
        request_timeout_ms: int = 30_000,
        backoff_ms: int = 100,
        backoff_max_ms: int = 1_000,
        clock: Clock | None = None,
    ) -> None:
        self.view, self.timeout_ms = view, timeout_ms
        self.request_timeout_ms = min(request_timeout_ms, timeout_ms)
        self._backoff, self._clock = Backoff(backoff_ms, backoff_max_ms), clock or SYSTEM_CLOCK

    async def any(self, request: object) -> Any:
        """The reply of any broker."""
        return await self._anyone(self.view.ask_any(request))

    async def metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        return await self._anyone(self.view.metadata(topics))

    async def broker(self, node_id: int, request: object, newest: int | None = None) -> Any:
        """The reply of one broker, in a version of at most `newest`."""
        if newest is None:
            return await self._told(self.view.ask(node_id, request))
        link = await self.view.link(node_id)
        version = min(newest, _newest(link, request))
        return await self._told(link.request(request, version, self.request_timeout_ms))

    async def newest(self, node_id: int, key: int) -> int:
        """The newest version of an API that a broker and this side know."""
        link = await self.view.link(node_id)
        try:
            return link.newest(key)
        except LinkError as broken:
            raise link_failure(broken) from broken

    async def encoded(self, node_id: int, key: int, version: int, body: bytes, read: Callable[[bytearray], T]) -> T:
        """The reply of one broker to a request that is encoded already, as `read` makes it of its frame."""
        link = await self.view.link(node_id)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def settle(reply: T, error: LinkError | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(reply)

        link.post_encoded(key, version, body, self.request_timeout_ms, settle, read)
        return await self._told(future)

    async def coordinator(self, name: str, request: object, newest: int | None = None, kind: int = GROUP) -> Any:
        """The reply of the broker that coordinates a group, or whatever else `kind` says."""
        return await self.broker(await self.view.coordinator(name, kind), request, newest)

    async def settled(
        self, items: Iterable[K], ask: Callable[[list[K]], Awaitable[Mapping[K, V | ClientError]]]
    ) -> Results[K, V]:
        """Asks about items until each has a value or a failure that time does not mend.

        What nobody could be reached for is tried again too, as long as the cluster itself answers.
        """
        results: Results[K, V] = Results()
        pending = list(dict.fromkeys(items))
        deadline_ms = self._clock.monotonic_ms() + self.timeout_ms
        failures = 0
        while pending:
            outcomes = await ask(pending)
            again: list[K] = []
            failures += 1
            delay_ms = self._backoff.delay_ms(failures)
            late = self._clock.monotonic_ms() + delay_ms >= deadline_ms
            for item in pending:
                outcome = outcomes.get(item, _unanswered(item))
                if not isinstance(outcome, ClientError):
                    results.done[item] = outcome
                elif transient(outcome) and not late:
                    again.append(item)
                else:
                    results.failed[item] = outcome
            pending = again
            if pending:
                await asyncio.sleep(delay_ms / 1000)
        return results

    async def patient(self, call: Callable[[], Awaitable[T]]) -> T:
        """One call that raises, made again as long as its failure is one that passes."""

        async def ask(_: list[str]) -> Mapping[str, T | ClientError]:
            try:
                return {"": await call()}
            except ClientError as failure:
                return {"": failure}

        return (await self.settled([""], ask)).checked()[""]

    async def by_leader(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, V | ClientError]]],
    ) -> Results[TopicPartition, V]:
        """Asks the leader of each partition, all leaders at once."""

        async def attempt(pending: list[TopicPartition]) -> Mapping[TopicPartition, V | ClientError]:
            leaders = await self._leaders(pending)
            outcomes: dict[TopicPartition, V | ClientError] = {
                item: leader for item, leader in leaders.items() if isinstance(leader, ClientError)
            }
            of_node: dict[int, list[TopicPartition]] = {}
            for item, leader in leaders.items():
                if not isinstance(leader, ClientError):
                    of_node.setdefault(leader, []).append(item)
            for found in await asyncio.gather(
                *(gathered(partial(ask, node, led), led) for node, led in sorted(of_node.items()))
            ):
                outcomes.update(found)
            return outcomes

        return await self.settled(partitions, attempt)

    async def by_broker(self, node_ids: Iterable[int] | None, ask: Callable[[int], Awaitable[V]]) -> Results[int, V]:
        """Asks each of these brokers, of all for None, all at once. `ask` raises what a broker refuses."""

        async def ask_one(node_id: int) -> Mapping[int, V | ClientError]:
            return {node_id: await ask(node_id)}

        async def attempt(pending: list[int]) -> Mapping[int, V | ClientError]:
            outcomes: dict[int, V | ClientError] = {}
            for found in await asyncio.gather(*(gathered(partial(ask_one, node), [node]) for node in pending)):
                outcomes.update(found)
            return outcomes

        if node_ids is None:
            node_ids = sorted(broker.node_id for broker in (await self.metadata([])).brokers)
        return await self.settled(node_ids, attempt)

    async def by_coordinator(
        self,
        names: Iterable[str],
        ask: Callable[[int, list[str]], Awaitable[Mapping[str, V | ClientError]]],
        kind: int = GROUP,
    ) -> Results[str, V]:
        """Asks the coordinator of each group, or whatever else `kind` says, all coordinators at once."""

        async def attempt(pending: list[str]) -> Mapping[str, V | ClientError]:
            outcomes: dict[str, V | ClientError] = {}
            of_node: dict[int, list[str]] = {}
            for name in pending:
                try:
                    of_node.setdefault(await self.view.coordinator(name, kind), []).append(name)
                except ClientError as failure:
                    if isinstance(failure.__cause__, (Foreign, Unreachable)):
                        raise NobodyThere(failure.why, where=failure.where) from failure.__cause__
                    outcomes[name] = failure
            for found in await asyncio.gather(
                *(gathered(partial(ask, node, ids), ids) for node, ids in sorted(of_node.items()))
            ):
                outcomes.update(found)
            for name, outcome in outcomes.items():
                if isinstance(outcome, ClientError):
                    self.view.forget_coordinator(name, kind)
            return outcomes

        return await self.settled(names, attempt)

    async def _leaders(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | ClientError]:
        reply = await self.metadata(sorted({item.topic for item in partitions}))
        topics = {topic.name: topic for topic in reply.topics}
        leaders: dict[TopicPartition, int | ClientError] = {}
        for item in partitions:
            topic = topics[item.topic]
            if topic.error_code:
                leaders[item] = refused(topic.error_code, None, f"topic {item.topic!r}")
                continue
            found = {partition.partition_index: partition for partition in topic.partitions}.get(item.partition)
            where = partition_words(item)
            if found is None:
                leaders[item] = refused(UNKNOWN_TOPIC_OR_PARTITION.code, None, where)
            elif found.leader_id < 0:
                leaders[item] = refusal(LEADER_NOT_AVAILABLE.code, "it has no leader", where)
            else:
                leaders[item] = found.leader_id
        return leaders

    async def _anyone(self, reply: Awaitable[T]) -> T:
        try:
            return await self._told(reply)
        except NotReachable as failure:
            if isinstance(failure.__cause__, (Foreign, Unreachable)):
                raise NobodyThere(failure.why, where=failure.where) from failure.__cause__
            raise

    async def _told(self, reply: Awaitable[T]) -> T:
        try:
            return await reply
        except LinkError as broken:
            raise link_failure(broken) from broken
        except ClientError:
            raise
        except PenstockError as unknown:  # a broker that metadata does not name (any more)
            raise BrokerRefused(str(unknown), error=BROKER_NOT_AVAILABLE) from unknown


async def gathered(
    ask: Callable[[], Awaitable[Mapping[K, V | ClientError]]], items: Sequence[K]
) -> Mapping[K, V | ClientError]:
    """The answer, or the reason why there is none, for every item that was asked about.

    The question is put in here: a coroutine made by the caller would be left behind, with a warning, when the task
    that should await it is cancelled before its first step.
    """
    try:
        return await ask()
    except ClientError as failure:
        return dict.fromkeys(items, failure)


def transient(failure: ClientError) -> bool:
    """Whether another try may go better. A broker that nobody reaches may be dead, and its partitions led elsewhere."""
    if isinstance(failure, NotReachable):
        return not isinstance(failure, NobodyThere)
    return failure.error in TRANSIENT


def unsupported(failure: ClientError) -> bool:
    return failure.error is UNSUPPORTED_VERSION or isinstance(failure.__cause__, Unsupported)


def refused(code: int, words: str | None, where: str) -> ClientError:
    """What a broker refused, in its own words if it has any that say more than the code."""
    if code in _ABSENT:
        # Brokers word this as "this server does not host this topic-partition", which leaves out which.
        return refusal(code, f"{where} does not exist", "")
    return refusal(code, words or f"{where} was refused", "")


def check(code: int, words: str | None, where: str) -> None:
    if code:
        raise refused(code, words, where)


def partition_words(item: TopicPartition) -> str:
    return f"partition {item.partition} of topic {item.topic!r}"


def _unanswered(item: object) -> ClientError:
    return UnknownTopic(f"the broker said nothing about {item}")


def _newest(link: Any, request: object) -> int:
    try:
        version: int = link.newest(schema_of(type(request)).key)
    except LinkError as broken:
        raise link_failure(broken) from broken
    return version
