"""GroupSession against a broker in this process: live members, broken connections, refused commits."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.group.session import GroupSession
from penstock.client.consumer.offsets import OffsetAndMetadata
from penstock.client.errors import BadSetting, CommitFailed, MemberFenced, TimedOutWaiting
from penstock.client.settings import ConsumerSettings
from penstock.model.ids import TopicPartition
from penstock.testing import broker
from penstock.testing.embedded import EmbeddedBroker
from tests.patience import within

WAIT_S = 20.0
LOOK_AGAIN_S = 0.05
_names = itertools.count()


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1_000,
        "num.partitions": 4,
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 100,
        "group.consumer.assignment.interval.ms": 0,
    }
    with broker(settings) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_names)}"


class Hooks:
    """Remembers what was given and taken; `during` runs inside of every revoke."""

    def __init__(self) -> None:
        self.told: list[tuple[str, set[int]]] = []
        self.during: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.news = asyncio.Event()

    async def revoke(self, partitions: frozenset[TopicPartition], *, lost: bool) -> None:
        self._tell("lost" if lost else "revoked", partitions)
        if self.during is not None:
            await self.during()

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        self._tell("assigned", partitions)

    def _tell(self, what: str, partitions: frozenset[TopicPartition]) -> None:
        self.told.append((what, {partition.partition for partition in partitions}))
        self.news.set()


class Member:
    def __init__(self, session: GroupSession, hooks: Hooks, view: ClusterView) -> None:
        self.session, self.hooks, self.view = session, hooks, view

    @property
    def owned(self) -> set[int]:
        return {partition.partition for partition in self.session.assignment}

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits for a hook that makes it so; what another member's hook makes so is seen a moment later."""
        async with asyncio.timeout(within(WAIT_S)):
            while not true():
                self.hooks.news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.hooks.news.wait(), LOOK_AGAIN_S)


@asynccontextmanager
async def member(node: EmbeddedBroker, group: str, topic: str | None, **given: Any) -> AsyncIterator[Member]:
    pattern = given.pop("pattern", None)
    if given.get("group_protocol") != "consumer":
        given = {"heartbeat_interval_ms": 100, "session_timeout_ms": 6_000, **given}
    settings = ConsumerSettings.of({"bootstrap_servers": node.bootstrap_servers, "group_id": group, **given})
    async with ClusterView(node.bootstrap_servers) as view:
        hooks = Hooks()
        session = GroupSession(view, settings, hooks)
        session.subscribe(None if topic is None else frozenset({topic}), pattern)
        await session.start()
        try:
            yield Member(session, hooks, view)
        finally:
            await session.leave(timeout_ms=5_000)


def offsets(topic: str, *numbers: int, at: int = 1) -> dict[TopicPartition, OffsetAndMetadata]:
    return {TopicPartition(topic, number): OffsetAndMetadata(at) for number in numbers}


async def _share(node: EmbeddedBroker, topic: str, given: dict[str, Any]) -> None:
    async with member(node, topic, topic, **given) as first:
        await first.until(lambda: first.owned == {0, 1, 2, 3})
        async with member(node, topic, topic, **given) as second:
            await second.until(lambda: len(second.owned) == 2)
            await first.until(lambda: first.owned == {0, 1, 2, 3} - second.owned)
            await first.session.commit(offsets(topic, *first.owned, at=9))
            found = await second.session.committed([TopicPartition(topic, n) for n in range(4)])
            assert found == offsets(topic, *first.owned, at=9)
        await first.until(lambda: first.owned == {0, 1, 2, 3})
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@pytest.mark.parametrize(
    "given",
    [{}, {"assignors": ["cooperative-sticky"]}, {"group_protocol": "consumer"}],
    ids=["eager", "cooperative", "consumer"],
)
def test_two_members_share_commit_and_leave_nothing_behind(
    node: EmbeddedBroker, topic: str, given: dict[str, Any]
) -> None:
    asyncio.run(_share(node, topic, given))


def test_a_rebalance_is_one_readable_line_in_the_log(
    node: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            assert only.session.metrics()["partitions-assigned-total"] == 4

    with caplog.at_level(logging.INFO, "penstock.client.group"):
        asyncio.run(run())
    lines = [record.getMessage() for record in caplog.records if "rebalanced" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].endswith(f"generation 1: +4 -0, now {topic} 0-3")


def test_a_pattern_finds_topics_that_match_as_a_whole(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, f"{topic}-maker", f"{topic}-x") as maker:
            await maker.until(lambda: len(maker.owned) == 4)
        async with member(node, topic, None, pattern=f"{topic}-[xy]") as only:
            await only.until(lambda: len(only.owned) == 4)
            assert {partition.topic for partition in only.session.assignment} == {f"{topic}-x"}

    asyncio.run(run())


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_join_that_loses_its_connection_comes_through(node: EmbeddedBroker, topic: str, api: str) -> None:
    async def run() -> None:
        node.disconnect(api=api, times=2)
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            assert only.session.metrics()["coordinator-change-total"] == 3

    asyncio.run(run())


def test_heartbeats_that_lose_their_connection_move_nothing(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            beats = only.session.metrics()["heartbeat-total"]
            node.disconnect(api="Heartbeat", times=2)
            async with asyncio.timeout(within(WAIT_S)):
                while only.session.metrics()["heartbeat-total"] < beats + 5:
                    await asyncio.sleep(0.01)
            assert only.hooks.told == [("assigned", {0, 1, 2, 3})]

    asyncio.run(run())


def test_a_member_that_was_expelled_loses_its_partitions_and_returns(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic, session_timeout_ms=1_500) as only:
            await only.until(lambda: len(only.owned) == 4)
            node.fail(api="Heartbeat", code="UNKNOWN_MEMBER_ID")
            await only.until(lambda: len(only.hooks.told) == 3)
            assert [what for what, _ in only.hooks.told] == ["assigned", "lost", "assigned"]

    asyncio.run(run())


def test_commits_inside_of_a_revoke_are_taken(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as first:
            await first.until(lambda: len(first.owned) == 4)

            async def commit() -> None:
                await first.session.commit(offsets(topic, *first.owned, at=7))

            first.hooks.during = commit
            async with member(node, topic, topic) as second:
                await second.until(lambda: len(second.owned) == 2)
                found = await second.session.committed([TopicPartition(topic, n) for n in range(4)])
                assert found == offsets(topic, 0, 1, 2, 3, at=7)
                first.hooks.during = None

    asyncio.run(run())


@pytest.mark.parametrize("code", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_TOPIC_OR_PARTITION"])
def test_commits_are_retried_where_that_can_help(node: EmbeddedBroker, topic: str, code: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            node.fail(api="OffsetCommit", code=code, times=2)
            await only.session.commit(offsets(topic, 0, at=3))
            node.disconnect(api="OffsetFetch")
            assert await only.session.committed([TopicPartition(topic, 0)]) == offsets(topic, 0, at=3)

    asyncio.run(run())


def test_an_old_epoch_is_retried_with_the_new_one(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic, group_protocol="consumer") as only:
            await only.until(lambda: len(only.owned) == 4)
            node.fail(api="OffsetCommit", code="STALE_MEMBER_EPOCH")
            await only.session.commit(offsets(topic, 0, at=3))
            node.fail(api="OffsetFetch", code="UNSTABLE_OFFSET_COMMIT", times=2)
            assert await only.session.committed([TopicPartition(topic, 0)]) == offsets(topic, 0, at=3)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("REBALANCE_IN_PROGRESS", "rebalancing"),
        ("ILLEGAL_GENERATION", "new owner"),
        ("UNKNOWN_MEMBER_ID", "max_poll_interval_ms"),
    ],
)
def test_a_commit_of_yesterday_fails_with_words(node: EmbeddedBroker, topic: str, code: str, words: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic, session_timeout_ms=1_500) as only:
            await only.until(lambda: len(only.owned) == 4)
            node.fail(api="OffsetCommit", code=code)
            with pytest.raises(CommitFailed, match=words):
                await only.session.commit(offsets(topic, 0))
            # The group is joined again, because the commit learned first that it has to be.
            await only.until(lambda: len(only.hooks.told) == 3)
            await only.session.commit(offsets(topic, 0))

    asyncio.run(run())


def test_a_commit_that_takes_too_long_says_what_went_wrong_last(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            node.fail(api="OffsetCommit", code="COORDINATOR_LOAD_IN_PROGRESS", times=50)
            with pytest.raises(TimedOutWaiting, match="COORDINATOR_LOAD_IN_PROGRESS"):
                await only.session.commit(offsets(topic, 0), timeout_ms=400)

    asyncio.run(run())
    node.clear_faults()


def test_commits_keep_their_order(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            node.fail(api="OffsetCommit", code="COORDINATOR_LOAD_IN_PROGRESS")
            await asyncio.gather(*(only.session.commit(offsets(topic, 0, at=at)) for at in range(1, 6)))
            assert await only.session.committed([TopicPartition(topic, 0)]) == offsets(topic, 0, at=5)

    asyncio.run(run())


def test_partitions_assigned_by_hand_are_committed_without_membership(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        settings = ConsumerSettings.of({"bootstrap_servers": node.bootstrap_servers, "group_id": topic})
        async with ClusterView(node.bootstrap_servers) as view:
            await view.topic(topic, create=True)
            session = GroupSession(view, settings, Hooks())
            await session.commit(offsets(topic, 0, at=4))
            assert await session.committed([TopicPartition(topic, n) for n in (0, 1)]) == offsets(topic, 0, at=4)
            await session.leave(timeout_ms=100)

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_second_holder_of_an_instance_id_is_told(node: EmbeddedBroker, topic: str, protocol: str) -> None:
    async def run() -> None:
        given = {"group_instance_id": "i", "group_protocol": protocol}
        async with member(node, topic, topic, **given) as first:
            await first.until(lambda: len(first.owned) == 4)
            async with member(node, topic, topic, **given) as second:
                # The classic protocol gives the newcomer the place, the consumer protocol keeps the holder.
                refused = first if protocol == "classic" else second
                async with asyncio.timeout(within(WAIT_S)):
                    while refused.session.failure is None:
                        await asyncio.sleep(0.01)
                assert isinstance(refused.session.failure, MemberFenced)

    asyncio.run(run())


def test_leaving_ends_even_when_a_hook_hangs(node: EmbeddedBroker, topic: str) -> None:
    async def run() -> None:
        async with member(node, topic, topic) as only:
            await only.until(lambda: len(only.owned) == 4)
            only.hooks.during = asyncio.Event().wait  # type: ignore[assignment]  # never set
            await only.session.leave(timeout_ms=50)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(run())


def test_an_unknown_strategy_is_refused_at_once(node: EmbeddedBroker) -> None:
    async def run() -> None:
        settings = ConsumerSettings.of({"group_id": "g", "assignors": ["rnage"]})
        async with ClusterView(node.bootstrap_servers) as view:
            with pytest.raises(BadSetting, match="there are range"):
                GroupSession(view, settings, Hooks())

    asyncio.run(run())
