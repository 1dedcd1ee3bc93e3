"""A consumer's place in its group, live: obeys a membership machine and keeps its commits.

There is no loop that polls: replies, hooks and timers call the machine, and its effects are carried out at once. What
has to wait (a hook, finding the coordinator, metadata) is a task of its own, and all of them end with the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

from penstock.client.clock import SYSTEM_CLOCK, on_jump
from penstock.client.cluster_view import ClusterView, TopicView
from penstock.client.consumer.group.assignors import assignors_of
from penstock.client.consumer.group.classic_member import ClassicMember
from penstock.client.consumer.group.commits import Identity
from penstock.client.consumer.group.committer import Committer, newest_for
from penstock.client.consumer.group.consumer_member import ConsumerMember
from penstock.client.consumer.group.effects import (
    Assign,
    Effect,
    Ended,
    Fail,
    FindCoordinator,
    LearnNames,
    LearnTopics,
    LoseCoordinator,
    Revoke,
    Say,
    Send,
)
from penstock.client.consumer.group.fitting import fitted
from penstock.client.consumer.group.membership import POLL_EXPIRED, MemberSettings
from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.errors import BadSetting, BrokerRefused, ClientError, CommitFailed, NotReachable, link_failure
from penstock.client.retry import Backoff
from penstock.client.settings import ConsumerSettings
from penstock.model.errors import UNSUPPORTED_VERSION, ErrorCode, PenstockError
from penstock.model.ids import TopicPartition, Uuid, new_uuid, uuid_text
from penstock.model.ports import Clock
from penstock.transport.dial import Link, LinkError

log = logging.getLogger("penstock.client.group")

CREATION_WAIT_MS = 2_000
MISSING_TOPICS_RETRY_MS = 3_000
_HANG_UP_MS = 1_000


class GroupHooks(Protocol):
    """What the consumer does when its partitions change. Heartbeats go on meanwhile."""

    async def revoke(self, partitions: frozenset[TopicPartition], *, lost: bool) -> None:
        """Before these are given up (commit now), or, when `lost`, after others may have got them."""

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        """These were added; called after every rebalance, also when nothing was."""


class GroupSession:
    """One consumer in one group. Used without `start` it only commits, for partitions assigned by hand.

    `in_poll` tells that the application waits in a poll, which counts as polling for as long as it is set.
    `on_failure` is called with what `failure` then holds: the membership is over, or nobody at the addresses that are
    known speaks Kafka. The latter is asked again and again, because nodes that start and stop look like that, too.
    """

    def __init__(
        self, view: ClusterView, settings: ConsumerSettings, hooks: GroupHooks, *, clock: Clock | None = None
    ) -> None:
        assert settings.group_id is not None, "a session has a group"
        self._view, self._settings, self._hooks = view, settings, hooks
        self._clock = clock or SYSTEM_CLOCK
        self._group_id = settings.group_id
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._machine = _machine_for(settings, self._backoff)
        self._committer = Committer(
            view, self._clock, self._backoff, settings.request_timeout_ms, self._identity, self._moved_on
        )
        self._topics: frozenset[str] | None = None
        self._pattern: re.Pattern[str] | None = None
        self._asked_to_create: set[str] = set()
        self._link: Link | None = None
        self._node = -1
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at: float | None = None
        self._looking = False
        self._ended = asyncio.Event()
        self._started = False
        self._closed = False
        self.in_poll = False
        self.on_failure: Callable[[ClientError], None] | None = None
        self._nobody: NotReachable | None = None

    # What the consumer sees.

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What may be read now."""
        return self._machine.owned

    @property
    def generation(self) -> int:
        return self._machine.generation

    @property
    def member_id(self) -> str:
        return self._machine.member_id

    @property
    def failure(self) -> ClientError | None:
        return self._machine.failure or self._nobody

    def metrics(self) -> dict[str, float]:
        """Counts and times since the session began, under Kafka's names where it has one; latencies in ms."""
        counters, committer = self._machine.counters, self._committer
        return {
            "join-total": counters.joins,
            "failed-rebalance-total": counters.failed_rebalances,
            "rebalance-latency-avg": counters.rebalance_ms_total / max(counters.rebalances, 1),
            "rebalance-latency-max": counters.rebalance_ms_max,
            "last-rebalance-seconds-ago": self._seconds_since(counters.last_rebalance_at),
            "heartbeat-total": counters.heartbeats,
            "last-heartbeat-seconds-ago": self._seconds_since(counters.last_heartbeat_at),
            "coordinator-change-total": counters.coordinator_changes,
            "partitions-assigned-total": counters.partitions_assigned,
            "partitions-revoked-total": counters.partitions_revoked,
            "partitions-lost-total": counters.partitions_lost,
            "commit-latency-avg": committer.commit_ms_total / max(committer.commits, 1),
            "commit-latency-max": committer.commit_ms_max,
        }

    def _seconds_since(self, at_ms: float) -> float:
        """-1 for what has not happened yet."""
        return -1 if at_ms < 0 else (self._now() - at_ms) / 1000

    def subscribe(self, topics: frozenset[str] | None, pattern: str | None) -> None:
        """Names or a pattern that whole names match; may be called again at any time."""
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe to topics or to a pattern")
        consumer_protocol = isinstance(self._machine, ConsumerMember)
        self._topics = topics
        self._pattern = None
        if pattern is not None and not consumer_protocol:
            try:
                self._pattern = re.compile(pattern)
            except re.error as broken:
                raise BadSetting(f"the pattern {pattern!r} cannot be compiled: {broken}") from broken
        if self._pattern is not None:
            self._look_soon()
        else:
            self._feed(self._machine.subscribe(topics or frozenset(), pattern, self._now()))
            if self._started and consumer_protocol:
                self._spawn(self._create_missing(topics or frozenset()))

    async def start(self) -> None:
        """Joins in the background; hooks tell what comes of it."""
        assert not self._started, "a session starts once"
        self._started = True
        self._view.when_changed(self._topology_changed)
        on_jump(self._clock, self._jumped(asyncio.get_running_loop()))
        self._feed(self._machine.start(self._now()))
        if self._pattern is not None:
            self._look_soon()
        elif isinstance(self._machine, ConsumerMember):
            self._spawn(self._create_missing(self._topics or frozenset()))

    def polled(self) -> None:
        """The application is alive. Cheap: its deadline only moves away, so the timer may stay as it is."""
        effects = self._machine.polled(self._now())
        if effects:
            self._feed(effects)

    async def leave(self, *, timeout_ms: float) -> None:
        """Gives everything up, tells the coordinator and ends; after `timeout_ms` it ends in any case."""
        if self._closed:
            return
        try:
            if self._started:
                self._feed(self._machine.leave(self._now()))
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._ended.wait()
        except TimeoutError:
            log.warning("group %s: did not leave within %.0f ms; its session will end it", self._group_id, timeout_ms)
        finally:
            await self._close()

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: float | None = None,
        automatic: bool = False,
    ) -> None:
        """Stores positions, in the order of the calls; CommitFailed when the partitions are no longer ours."""
        await self._committer.commit(offsets, self._limit_ms(timeout_ms), automatic=automatic)

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's positions; partitions that have none are left out."""
        return await self._committer.committed(partitions, self._limit_ms(timeout_ms))

    def metadata(self) -> GroupMetadata:
        """As whom a transaction commits offsets; CommitFailed when this is no member at the moment."""
        who = self._identity(True)
        return GroupMetadata(who.group_id, who.generation, who.member_id, who.instance_id)

    # Commits.

    def _limit_ms(self, timeout_ms: float | None) -> float:
        return self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms

    def _identity(self, for_commit: bool) -> Identity:
        machine = self._machine
        if not self._started or (machine.generation < 0 and not for_commit):
            return Identity(self._group_id)
        if machine.generation < 0:
            why = POLL_EXPIRED if machine.expired else "this consumer is not a member of the group at the moment"
            words = f"{why}; what it held may belong to others, who will read it again"
            raise CommitFailed(words, where=f"group {self._group_id}")
        return Identity(
            self._group_id,
            machine.member_id,
            machine.generation,
            self._settings.group_instance_id,
            by_epoch=isinstance(machine, ConsumerMember),
        )

    def _moved_on(self, error: ErrorCode, generation: int) -> None:
        if self._started:
            self._feed(self._machine.commit_refused(error, generation, self._now()))

    # Effects.

    def _now(self) -> float:
        return self._clock.monotonic_ms()

    def _feed(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._obey(effect)
        self._rearm()

    def _obey(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case Revoke() | Assign():
                self._spawn(self._run_hook(effect))
            case FindCoordinator():
                self._spawn(self._find())
            case LoseCoordinator(why):
                self._lose(why)
            case LearnTopics(names):
                self._spawn(self._learn_topics(names))
            case LearnNames(ids):
                self._spawn(self._learn_names(ids))
            case Say(words):
                log.info("%s", words)
            case Fail(error):
                if self.on_failure is not None:
                    self.on_failure(error)
            case Ended():
                self._ended.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _rearm(self) -> None:
        if self._closed or not self._started:
            return
        times = [at for at in (self._machine.deadline(), self._look_at) if at is not None]
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if times:
            delay_ms = max(min(times) - self._now(), 0.0)
            # Coarser than the clock, so that a timer never fires just before its deadline and spins.
            self._timer = asyncio.get_running_loop().call_later((delay_ms + 1) / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._now()
        if self.in_poll:
            self._feed(self._machine.polled(now))
        if self._look_at is not None and now >= self._look_at:
            self._look_soon()
        self._feed(self._machine.tick(now))

    def _jumped(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        def wake() -> None:
            if not self._closed:
                loop.call_soon_threadsafe(self._tick)

        return wake

    def _send(self, effect: Send) -> None:
        if effect.aside:
            self._spawn(self._send_aside(effect))
            return
        link = self._link
        if link is None:
            self._not_sent(effect, NotReachable("the coordinator was lost", retriable=True))
            return
        try:
            version = newest_for(link, effect.request)
            link.post(
                fitted(effect.request, version),
                version,
                effect.timeout_ms,
                lambda reply, error: self._answered(effect, reply, error),
            )
        except PenstockError as broken:
            self._not_sent(effect, _told(broken))

    def _not_sent(self, effect: Send, error: ClientError) -> None:
        asyncio.get_running_loop().call_soon(self._unanswered, effect, error)

    def _answered(self, effect: Send, reply: Any, error: LinkError | None) -> None:
        if self._closed:
            return
        if error is not None:
            self._unanswered(effect, link_failure(error))
        else:
            self._feed(self._machine.replied(effect, reply, self._now()))

    def _unanswered(self, effect: Send, error: ClientError) -> None:
        if not self._closed:
            self._feed(self._machine.unanswered(effect, error, self._now()))

    async def _send_aside(self, effect: Send) -> None:
        try:
            link = await self._view.link(self._node)
            version = newest_for(link, effect.request)
            reply = await link.request(fitted(effect.request, version), version, effect.timeout_ms)
        except PenstockError as broken:
            self._unanswered(effect, _told(broken))
        else:
            self._feed(self._machine.replied(effect, reply, self._now()))

    async def _run_hook(self, hook: Revoke | Assign) -> None:
        try:
            if isinstance(hook, Revoke):
                await self._hooks.revoke(hook.partitions, lost=hook.lost)
            else:
                await self._hooks.assign(hook.partitions)
        except Exception:
            # The group must go on; whoever wrote the hook reads about it.
            log.exception("group %s: a rebalance hook failed", self._group_id)
        self._feed(self._machine.hook_done(self._now()))

    # The coordinator.

    async def _find(self) -> None:
        try:
            node = await self._view.coordinator(self._group_id)
            link = await self._view.dedicated_link(node)
        except PenstockError as broken:
            self._view.forget_coordinator(self._group_id)
            failure = _told(broken)
            self._nobody = failure if isinstance(failure, NotReachable) and not failure.retriable else None
            if self._nobody is not None:
                failure = NotReachable(failure.why, where=failure.where, retriable=True)
                if self.on_failure is not None:
                    self.on_failure(self._nobody)
            self._feed(self._machine.coordinator_missing(failure, self._now()))
            return
        self._nobody = None
        self._link, self._node = link, node
        link.when_lost(lambda: self._link_lost(link))
        self._feed(self._machine.coordinator_found(self._now()))

    def _link_lost(self, link: Link) -> None:
        if self._link is link and not self._closed:
            self._feed(self._machine.coordinator_lost(link.why_lost, self._now()))

    def _lose(self, why: str) -> None:
        log.info("group %s: lost its coordinator, broker %d: %s", self._group_id, self._node, why)
        self._view.forget_coordinator(self._group_id)
        link, self._link = self._link, None
        if link is not None:
            link.abort()

    # Topics.

    async def _learn_topics(self, names: frozenset[str]) -> None:
        machine = self._machine
        assert isinstance(machine, ClassicMember)
        await self._create_missing(names & (self._topics or frozenset()))
        try:
            found = await self._view.topics(sorted(names))
        except PenstockError as broken:
            self._feed(machine.topics_missing(_told(broken), self._now()))
            return
        self._view.follow(*found)
        self._set_look(names, found)
        self._feed(machine.topics_learned(_picture(found), self._now()))

    async def _learn_names(self, ids: frozenset[Uuid]) -> None:
        machine = self._machine
        assert isinstance(machine, ConsumerMember)
        names = {topic_id: self._view.name_of(topic_id) for topic_id in ids}
        if not all(names.values()):
            with contextlib.suppress(ClientError):  # asked for again, because they are still unknown
                await self._view.topics(sorted(self._topics) if self._topics else None)
            names = {topic_id: self._view.name_of(topic_id) for topic_id in ids}
        known = {topic_id: name for topic_id, name in names.items() if name is not None}
        self._view.follow(*known.values())
        self._feed(machine.names_learned(known, self._now()))

    async def _create_missing(self, names: frozenset[str]) -> None:
        """Asks once for each topic that is not there; whether brokers make it is theirs to say."""
        if not self._settings.create_topics:
            return
        missing = [name for name in sorted(names - self._asked_to_create) if self._view.cached(name) is None]
        self._asked_to_create.update(missing)
        wait = (self._view.topic(name, create=True, timeout_ms=CREATION_WAIT_MS) for name in missing)
        for outcome in await asyncio.gather(*wait, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, ClientError):
                raise outcome

    def _set_look(self, names: Iterable[str], found: Mapping[str, TopicView]) -> None:
        whole = all(name in found for name in names)
        self._look_at = self._now() + (self._settings.metadata_max_age_ms if whole else MISSING_TOPICS_RETRY_MS)
        self._rearm()

    def _look_soon(self) -> None:
        """Looks at the topics again: those that a leader assigns, or that a pattern may match."""
        self._look_at = None
        nothing = self._pattern is None and not (isinstance(self._machine, ClassicMember) and self._machine.watched)
        if self._started and not self._looking and not nothing:
            self._looking = True
            self._spawn(self._look())

    async def _look(self) -> None:
        machine = self._machine
        assert isinstance(machine, ClassicMember)
        try:
            found = await self._view.topics(None if self._pattern is not None else sorted(machine.watched))
        except ClientError as broken:
            log.debug("group %s: topics could not be looked at: %s", self._group_id, broken)
            self._look_at = self._now() + MISSING_TOPICS_RETRY_MS
            self._rearm()
            return
        finally:
            self._looking = False
        self._set_look(machine.watched, found)
        pattern = self._pattern
        if pattern is not None:
            names = frozenset(name for name, topic in found.items() if self._matches(pattern, topic))
            self._feed(machine.subscribe(names, pattern.pattern, self._now()))
        self._feed(machine.topics_seen(_picture(found), self._now()))

    def _matches(self, pattern: re.Pattern[str], topic: TopicView) -> bool:
        hidden = topic.internal and self._settings.exclude_internal_topics
        return not hidden and pattern.fullmatch(topic.name) is not None

    def _topology_changed(self) -> None:
        """Somebody's refresh may show new partitions of what we assign, at no cost."""
        machine = self._machine
        if self._closed or not isinstance(machine, ClassicMember) or not machine.watched or self._looking:
            return
        found = {name: topic for name in machine.watched if (topic := self._view.cached(name)) is not None}
        effects = machine.topics_seen(_picture(found), self._now())
        if effects:
            self._feed(effects)

    # The end.

    async def _close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        link, self._link = self._link, None
        if link is not None:
            link.abort()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            # Bounded: a hook that swallows its cancellation is its own business.
            await asyncio.wait(tasks, timeout=_HANG_UP_MS / 1000)


def _told(broken: PenstockError) -> ClientError:
    """What the machine is told of a request that could not be sent or was not answered."""
    if isinstance(broken, ClientError):
        return broken
    if isinstance(broken, LinkError):
        return link_failure(broken)
    return BrokerRefused(f"the broker is too old for these settings: {broken}", error=UNSUPPORTED_VERSION)


def _machine_for(settings: ConsumerSettings, backoff: Backoff) -> ClassicMember | ConsumerMember:
    assert settings.group_id is not None
    classic = settings.group_protocol == "classic"
    try:
        assignors = assignors_of(settings.assignors) if classic else []
    except ValueError as unknown:
        raise BadSetting(str(unknown)) from unknown
    member = MemberSettings(
        group_id=settings.group_id,
        instance_id=settings.group_instance_id,
        rack=settings.client_rack or None,
        session_timeout_ms=settings.session_timeout_ms,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        max_poll_interval_ms=settings.max_poll_interval_ms,
        request_timeout_ms=settings.request_timeout_ms,
        assignors=assignors,
        remote_assignor=settings.group_remote_assignor,
    )
    if classic:
        return ClassicMember(member, backoff)
    # From the shared generator and not from the system's: simulated members have the same ids under one seed.
    return ConsumerMember(member, backoff, uuid_text(new_uuid(random)))


def _picture(found: Mapping[str, TopicView]) -> dict[str, list[frozenset[str]]]:
    return {
        name: [
            frozenset(rack for rack in partition.racks if rack is not None)
            for partition in sorted(topic.partitions, key=lambda partition: partition.index)
        ]
        for name, topic in found.items()
    }
