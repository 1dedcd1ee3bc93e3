"""Carrying out a plan: so many at a time, throttled and never left throttled, leaders last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import pytest

from penstock.cli.cluster_choice import brokers, chosen, parse_choices, rate
from penstock.client.admin import ConfigEntry, ConfigResource, PartitionInfo, Reassignment, Results, TopicInfo
from penstock.client.errors import BrokerRefused, UnknownTopic
from penstock.model.errors import INVALID_REPLICA_ASSIGNMENT, PenstockError
from penstock.model.ids import TopicPartition
from penstock.operations.moving.carrying_out import (
    FOLLOWER_RATE,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    Pace,
    Tally,
    carry_out,
)
from penstock.operations.moving.plan import Move
from tests.patience import within


class Cluster:
    """An Admin of a cluster in which every look at the moves ends one of them."""

    def __init__(self, *, refuses: Mapping[TopicPartition, Exception] | None = None, stuck: bool = False) -> None:
        self.moving: dict[TopicPartition, Sequence[int] | None] = {}
        self.most_at_once = 0
        self.elected: list[TopicPartition] = []
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.seen: list[dict[ConfigResource, dict[str, str]]] = []
        self._refuses, self._stuck = refuses or {}, stuck

    async def alter_partition_reassignments(self, to: Mapping[TopicPartition, Any]) -> Results[TopicPartition, None]:
        results: Results[TopicPartition, None] = Results()
        for item, nodes in to.items():
            if item in self._refuses:
                results.failed[item] = self._refuses[item]  # type: ignore[assignment]
            else:
                results.done[item] = None
                self.moving[item] = nodes
        self.most_at_once = max(self.most_at_once, len(self.moving))
        return results

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Reassignment]:
        self.seen.append({resource: dict(values) for resource, values in self.configs.items()})
        if not self._stuck and self.moving:
            self.moving.pop(next(iter(self.moving)))
        return {item: Reassignment([1, 2], [2], [1]) for item in partitions if item in self.moving}

    async def elect_leaders(self, partitions: list[TopicPartition]) -> None:
        self.elected += partitions

    async def describe_configs(
        self, resources: Iterable[ConfigResource]
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        results: Results[ConfigResource, dict[str, ConfigEntry]] = Results()
        for resource in resources:
            values = self.configs.get(resource, {})
            results.done[resource] = {
                name: ConfigEntry(name, value, resource.kind, False, False) for name, value in values.items()
            } or {LEADER_RATE: ConfigEntry(LEADER_RATE, "9223372036854775807", "default", False, False)}
        return results

    async def alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Results[ConfigResource, None]:
        results: Results[ConfigResource, None] = Results()
        for resource, values in changes.items():
            held = self.configs.setdefault(resource, {})
            for name, value in values.items():
                held.pop(name, None)
                if value is not None:
                    held[name] = value
            results.done[resource] = None
        return results


def move(index: int, before: tuple[int, ...], after: tuple[int, ...]) -> Move:
    return Move(TopicPartition("t", index), before, after)


PLAN = [*(move(index, (1, 2), (3, 2)) for index in range(7)), move(7, (1, 2), (2, 1))]
SIZES = {TopicPartition("t", index): 100 for index in range(8)}


def run(admin: Cluster, plan: Sequence[Move], pace: Pace, report: Any = lambda _: None) -> None:
    asyncio.run(
        carry_out(admin, plan, pace, alive=[1, 2, 3], sizes=SIZES, report=report)  # type: ignore[arg-type]
    )


def test_no_more_than_so_many_are_copied_at_once_and_leaders_come_last() -> None:
    admin = Cluster()
    tallies: list[tuple[int, int, int]] = []
    run(admin, PLAN, Pace(3), lambda tally: tallies.append((tally.partitions_done, tally.bytes_done, tally.bytes)))
    assert admin.most_at_once == 3
    assert tallies[-1] == (7, 700, 700)
    assert [each[0] for each in tallies] == list(range(1, 8))
    assert admin.elected == [each.partition for each in PLAN]


def test_a_throttle_is_there_while_replicas_are_copied_and_gone_afterwards() -> None:
    admin = Cluster()
    kept = ConfigResource.broker(1)
    admin.configs = {kept: {LEADER_RATE: "77"}}
    run(admin, PLAN[:1], Pace(3, bytes_per_s=5_000))
    topic = ConfigResource.topic("t")
    both = {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"}
    assert admin.seen[0] == {
        **{ConfigResource.broker(node): both for node in (1, 2, 3)},
        topic: {LEADERS: "0:1,0:2", FOLLOWERS: "0:3"},
    }
    assert {resource: values for resource, values in admin.configs.items() if values} == {kept: {LEADER_RATE: "77"}}


def test_an_interruption_leaves_no_throttle() -> None:
    admin = Cluster(stuck=True)

    async def main() -> None:
        looked = asyncio.Event()

        def report(_: Tally) -> None:
            looked.set()

        work = asyncio.ensure_future(
            carry_out(admin, PLAN, Pace(2, 1), alive=[1, 2, 3], sizes={}, report=report)  # type: ignore[arg-type]
        )
        await asyncio.wait_for(looked.wait(), within(10))
        assert any(admin.configs.values())
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    assert not any(admin.configs.values())
    assert len(admin.moving) == 2, "what was begun goes on"


def test_a_topic_that_is_gone_needs_no_move_and_a_refusal_is_told() -> None:
    gone = Cluster(refuses={PLAN[0].partition: UnknownTopic("gone")})
    run(gone, PLAN, Pace(3))
    refusing = Cluster(refuses={PLAN[0].partition: BrokerRefused("no", error=INVALID_REPLICA_ASSIGNMENT)})
    with pytest.raises(BrokerRefused, match="no"):
        run(refusing, PLAN, Pace(3, 1))
    assert not any(refusing.configs.values())


class Forgetful(Cluster):
    """Takes a throttle and does not let go of it."""

    async def alter_configs(self, changes: Any) -> Results[ConfigResource, None]:
        results = await super().alter_configs(changes)
        if any(None in values.values() for values in changes.values()):
            results.failed = dict.fromkeys(changes, BrokerRefused("busy", error=INVALID_REPLICA_ASSIGNMENT))
        return results


def test_a_throttle_that_stays_is_told_with_the_way_to_take_it_away() -> None:
    with pytest.raises(PenstockError, match="cluster config set --broker ID -d leader"):
        run(Forgetful(), PLAN[:1], Pace(3, 1))


CONTEXT = click.Context(click.Command("c"))
OPTION = click.Option(["--o"])


@pytest.mark.parametrize(
    ("text", "number"),
    [("50MB", 50 << 20), ("1.5 gb/s", 3 << 29), ("1048576", 1 << 20), ("8kb", 8 << 10), (None, None)],
)
def test_rates_have_units(text: str | None, number: int | None) -> None:
    assert rate(CONTEXT, OPTION, text) == number


@pytest.mark.parametrize("text", ["fast", "0", "-1MB", "5TB", ""])
def test_what_is_no_rate_is_told(text: str) -> None:
    with pytest.raises(click.BadParameter, match="50MB"):
        rate(CONTEXT, OPTION, text)


def test_brokers_are_ids_and_none_comes_twice() -> None:
    assert brokers(CONTEXT, OPTION, "3, 1,2") == (3, 1, 2)
    with pytest.raises(click.BadParameter, match="twice"):
        brokers(CONTEXT, OPTION, "1,1")
    with pytest.raises(click.BadParameter, match="1,2,3"):
        brokers(CONTEXT, OPTION, "1,b")


def test_topics_and_partitions_are_chosen_by_name() -> None:
    infos = [PartitionInfo(index, 1, 0, [1], [1], []) for index in range(2)]
    topics = [TopicInfo(name, "id", False, infos) for name in ("a", "b")]
    assert [str(item) for item in chosen(topics, parse_choices(["b", "a:1"]))] == ["b-0", "b-1", "a-1"]
    assert len(chosen(topics, [])) == 4
    for absent in ("c", "a:2"):
        with pytest.raises(UnknownTopic, match="does not exist"):
            chosen(topics, parse_choices([absent]))
    with pytest.raises(click.BadParameter, match="neither"):
        parse_choices(["a:x"])
