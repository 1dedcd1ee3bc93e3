"""Groups on a whole node: what members and operators see, and what is left after a restart or a power cut."""

from __future__ import annotations

import asyncio
import itertools
import logging
from random import Random
from typing import Any

import pytest

from penstock.kernels import read_header, scan_batches
from penstock.metadata.delta import Delta
from penstock.metadata.entities import CONFIG_GROUP
from penstock.model.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    INVALID_TOPIC_EXCEPTION,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from penstock.model.ids import OFFSETS_TOPIC, Epoch, NodeId, Offset, Uuid
from penstock.protocol.batch import read_records
from penstock.protocol.disk.metadata_topics import RemoveTopicRecord, TopicRecord
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.join_group import JoinGroupRequest
from penstock.protocol.messages.list_config_resources import ListConfigResourcesRequest
from penstock.protocol.messages.list_groups import ListGroupsRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.update_features import UpdateFeaturesRequest
from penstock.server.coordinating.groups import GROUP_READER
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.ports import SystemClock
from penstock.server.reception.authorize import Asked, Recording
from tests.patience import until, within
from tests.walks.data_plane import Client, Machine, batch_of, walk
from tests.walks.membership import (
    commit,
    committed,
    consumer_heartbeat,
    coordinator,
    heartbeat,
    join,
    leave,
    sync,
)

GROUP_RESOURCE = 32


def home(machine: Machine, group: str) -> Any:
    groups = machine.node.broker.groups
    return groups._homes[groups.home_of(group)]


# -- finding


def test_the_first_group_brings_the_offsets_topic() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        assert OFFSETS_TOPIC not in await client.topics()
        found = await coordinator(client, "g")
        assert (found.error_code, found.node_id, found.port) == (NONE.code, 1, machine.node.port)
        (topic,) = (await client.ask(MetadataRequest(topics=[_named(OFFSETS_TOPIC)]))).topics
        assert (len(topic.partitions), topic.is_internal) == (7, True)
        image = machine.node.control.metadata.image
        assert image.config(2, OFFSETS_TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "2000000",
        }

    walk(steps, offsets_topic_num_partitions="7", offsets_topic_segment_bytes="2000000")


def _named(name: str) -> MetadataRequest.MetadataRequestTopic:
    return MetadataRequest.MetadataRequestTopic(name=name)


@pytest.mark.parametrize("version", range(7))
def test_every_version_tells_where_a_group_is_coordinated(version: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        keys = {"key": "g"} if version < 4 else {"coordinator_keys": ["g", "h"]}
        reply = await client.ask(FindCoordinatorRequest(**keys), version)
        told = [reply] if version < 4 else reply.coordinators
        assert len(told) == (1 if version < 4 else 2)
        for each in told:
            found = (each.error_code, each.node_id, each.host, each.port)
            assert found == (NONE.code, 1, "127.0.0.1", machine.node.port)
        if version >= 4:
            assert [each.key for each in told] == ["g", "h"]

    walk(steps)


def test_many_who_look_at_once_make_one_topic() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        others = [await machine.dial() for _ in range(5)]
        found = await asyncio.gather(*(coordinator(each, f"g{number}") for number, each in enumerate(others)))
        assert [each.error_code for each in found] == [NONE.code] * 5

    walk(steps)


def test_there_is_no_coordinator_while_the_topic_cannot_be_made() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        found = await coordinator(client, "g")
        assert (found.error_code, found.node_id) == (COORDINATOR_NOT_AVAILABLE.code, -1)
        old = await client.ask(FindCoordinatorRequest(key="g"), 2)
        assert old.error_code == COORDINATOR_NOT_AVAILABLE.code
        assert OFFSETS_TOPIC not in await client.topics()
        assert (await join(client, "g")).error_code == NOT_COORDINATOR.code

    walk(steps, offsets_topic_replication_factor="3")


def test_clients_do_not_write_into_the_offsets_topic() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        assert (await client.produce(OFFSETS_TOPIC, b"x")).error_code == INVALID_TOPIC_EXCEPTION.code

    walk(steps)


# -- the classic protocol


def test_two_members_share_a_group() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        other = await machine.dial()
        first = await join(client, "g")
        assert (await sync(client, "g", first, **{first.member_id: b"all"})).assignment == b"all"
        waiting = join(other, "g")
        await until(lambda: home(machine, "g").shard.table.groups["g"].state_name() == "PreparingRebalance")
        assert (await heartbeat(client, "g", first)).error_code == REBALANCE_IN_PROGRESS.code
        assert not waiting.done()
        again, second = await asyncio.gather(join(client, "g", first.member_id), waiting)
        assert again.generation_id == second.generation_id == first.generation_id + 1
        leader, follower = (again, second) if again.leader == again.member_id else (second, again)
        ask_leader, ask_follower = (client, other) if leader is again else (other, client)
        waiting_for_assignment = sync(ask_follower, "g", follower)
        shares = {leader.member_id: b"left", follower.member_id: b"right"}
        assert (await sync(ask_leader, "g", leader, **shares)).assignment == b"left"
        assert (await waiting_for_assignment).assignment == b"right"
        assert (await heartbeat(other, "g", second)).error_code == NONE.code
        assert [each.error_code for each in (await leave(client, "g", again.member_id)).members] == [NONE.code]

    walk(steps)


def test_a_member_that_falls_silent_is_removed() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        first = await join(client, "g", session_ms=50)
        await sync(client, "g", first, **{first.member_id: b"all"})
        await until(lambda: home(machine, "g").shard.table.groups["g"].state_name() == "Empty")
        assert (await heartbeat(client, "g", first)).error_code == UNKNOWN_MEMBER_ID.code

    walk(steps, group_min_session_timeout_ms="10")


def test_a_join_that_is_held_back_ends_with_the_node() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        waiting = join(client, "g")
        await until(lambda: "g" in machine.node.broker.groups._places and home(machine, "g").shard is not None)
        machine.node.broker.groups.close()
        assert (await waiting).error_code == NOT_COORDINATOR.code

    walk(steps, group_initial_rebalance_delay_ms="20000")


def test_a_member_that_hangs_up_while_it_waits_harms_nobody() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        gone = await machine.dial()
        waiting = join(gone, "g")
        waiting.add_done_callback(lambda done: done.exception())
        await until(lambda: home(machine, "g").shard is not None)
        gone.reset()
        joined = await join(client, "g")
        assert joined.error_code == NONE.code

    walk(steps, group_initial_rebalance_delay_ms="100")


# -- the consumer protocol


def test_a_consumer_group_is_assigned_by_the_coordinator() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("t", 2)
        await coordinator(client, "g")
        reply = await consumer_heartbeat(client, "g", "me", 0, "t")
        assert reply.error_code == NONE.code
        assert reply.assignment is not None
        (mine,) = reply.assignment.topic_partitions
        assert (mine.topic_id, sorted(mine.partitions)) == (topic_id, [0, 1])
        assert (await commit(client, "g", "t", 5, member_id="me", epoch=reply.member_epoch)) == NONE.code
        (shown,) = (await client.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))).groups
        assert [(each.member_id, each.client_host) for each in shown.members] == [("me", "/127.0.0.1")]
        (none,) = (await client.ask(ConsumerGroupDescribeRequest(group_ids=["nobody"]))).groups
        assert none.error_code == GROUP_ID_NOT_FOUND.code

    walk(steps)


@pytest.mark.parametrize("off", ["by a setting", "by the feature"])
def test_the_consumer_protocol_can_be_off(off: str) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        if off == "by the feature":
            made = UpdateFeaturesRequest
            lower = made.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
            assert (await client.ask(made(feature_updates=[lower]))).error_code == NONE.code
        assert (await consumer_heartbeat(client, "g", "me", 0, "t")).error_code == UNSUPPORTED_VERSION.code
        (shown,) = (await client.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))).groups
        assert shown.error_code == UNSUPPORTED_VERSION.code

    settings = {"group_coordinator_rebalance_protocols": "classic"} if off == "by a setting" else {}
    walk(steps, **settings)


def test_what_is_set_on_a_group_counts_at_once() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        first = await consumer_heartbeat(client, "g", "me", 0, "t")
        assert first.heartbeat_interval_ms == 5_000
        made = IncrementalAlterConfigsRequest
        change = made.AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="7000")
        wanted = made.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=[change])
        (result,) = (await client.ask(made(resources=[wanted]))).responses
        assert result.error_code == NONE.code
        assert machine.node.control.metadata.image.config(CONFIG_GROUP, "g")
        assert (await consumer_heartbeat(client, "g", "me", first.member_epoch)).heartbeat_interval_ms == 7_000
        listed = await client.ask(ListConfigResourcesRequest(resource_types=[GROUP_RESOURCE]))
        assert [each.resource_name for each in listed.config_resources] == ["g"]
        unknown = await client.ask(ListConfigResourcesRequest(resource_types=[99]))
        assert unknown.error_code == UNSUPPORTED_VERSION.code

    walk(steps)


# -- offsets


def test_offsets_are_checked_against_the_topics() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("t", 2)
        await coordinator(client, "g")
        assert await commit(client, "g", "t", 7) == NONE.code
        assert await commit(client, "g", "t", 7, partition=2) == UNKNOWN_TOPIC_OR_PARTITION.code
        assert await commit(client, "g", "missing", 7) == UNKNOWN_TOPIC_OR_PARTITION.code
        assert await commit(client, "g", "", 8, partition=1, topic_id=topic_id, version=10) == NONE.code
        other = Uuid(bytes(range(16)))
        assert await commit(client, "g", "", 8, topic_id=other, version=10) == UNKNOWN_TOPIC_ID.code
        assert await committed(client, "g") == {("t", 0): 7, ("t", 1): 8}
        made = OffsetFetchRequest
        by_id = [
            made.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
            made.OffsetFetchRequestTopics(topic_id=other, partition_indexes=[0]),
        ]
        groups = [made.OffsetFetchRequestGroup(group_id="g", topics=topics) for topics in (by_id, None)]
        some, every = (await client.ask(made(groups=groups), 10)).groups
        found = [(topic.topic_id, topic.partitions[0].error_code) for topic in some.topics]
        assert found == [(topic_id, NONE.code), (other, UNKNOWN_TOPIC_ID.code)]
        assert [topic.topic_id for topic in every.topics] == [topic_id]

    walk(steps)


def test_a_commit_in_part_is_answered_in_part() -> None:
    no = Recording(Asked(Operation.READ, ResourceType.TOPIC, "secret"))

    async def steps(machine: Machine, client: Client) -> None:
        made = OffsetCommitRequest
        await client.create("t", 1)
        await client.create("secret", 1)
        await coordinator(client, "g")
        topics = [
            made.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    made.OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in (0, 5)
                ],
            )
            for name in ("t", "secret")
        ]
        reply = await client.ask(made(group_id="g", topics=topics), 9)
        told = {
            (topic.name, each.partition_index): each.error_code for topic in reply.topics for each in topic.partitions
        }
        refused = TOPIC_AUTHORIZATION_FAILED.code
        assert told == {
            ("t", 0): NONE.code,
            ("t", 5): UNKNOWN_TOPIC_OR_PARTITION.code,
            ("secret", 0): refused,
            ("secret", 5): refused,
        }
        assert await committed(client, "g") == {("t", 0): 1}

    walk(steps, authorizer=no)


def test_old_fetches_of_offsets_tell_errors_where_they_can() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        made = OffsetFetchRequest
        wanted = [made.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        first = await client.ask(made(group_id="g", topics=wanted), 1)
        assert [each.error_code for each in first.topics[0].partitions] == [NOT_COORDINATOR.code] * 2
        later = await client.ask(made(group_id="g", topics=wanted), 2)
        assert (later.error_code, later.topics) == (NOT_COORDINATOR.code, [])
        await coordinator(client, "g")
        shown = await client.ask(made(group_id="g", topics=wanted), 7)
        assert [(each.committed_offset, each.error_code) for each in shown.topics[0].partitions] == [(-1, 0)] * 2

    walk(steps)


def test_offsets_of_a_deleted_topic_go_with_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await client.create("u")
        await coordinator(client, "g")
        for topic in ("t", "u"):
            assert await commit(client, "g", topic, 3) == NONE.code
        await client.delete("t")
        held = home(machine, "g").shard.table.offsets
        await until(lambda: list(held["g"]) == [("u", 0)])

    walk(steps)


def test_offsets_of_a_topic_go_as_soon_as_they_can_when_replicas_were_missing() -> None:
    """The topic is made anew before the offsets topic takes a word; what nobody could write is not forgotten."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await client.create("u")
        await coordinator(client, "g")
        for topic in ("t", "u"):
            assert await commit(client, "g", topic, 3) == NONE.code
        shard, index = home(machine, "g").shard, machine.node.broker.groups.home_of("g")
        state = machine.node.partitions.named(OFFSETS_TOPIC, index).state
        in_sync, state.isr = state.isr, frozenset()
        await client.delete("t")
        await client.create("t")
        await until(lambda: home(machine, "g").shard not in (None, shard))
        assert ("t", 0) in home(machine, "g").shard.table.offsets["g"], "it was read again, and is not removed yet"
        assert await committed(client, "g") == {("u", 0): 3}
        state.isr = in_sync
        await until(lambda: list(home(machine, "g").shard.table.offsets["g"]) == [("u", 0)])
        assert await committed(client, "g") == {("u", 0): 3}

    walk(steps)


def test_a_topic_may_go_while_its_offsets_are_loaded() -> None:
    """And with a snapshot of the metadata, which brings an image of its own."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await client.create("u")
        await coordinator(client, "g")
        for topic in ("t", "u"):
            assert await commit(client, "g", topic, 3) == NONE.code
        groups = machine.node.broker.groups
        index = groups.home_of("g")
        hand_over(machine, index, leader=2)
        hand_over(machine, index, leader=1)
        loading = home(machine, "g")
        groups._chores.clear()
        for _ in range(3):
            assert loading._step(), "its shard is made, and the log is being read"
        image = machine.node.control.metadata.image.copy()
        for record in (RemoveTopicRecord(topic_id=image.ids["t"]), TopicRecord(name="t", topic_id=Uuid(b"n" * 16))):
            image.apply(record, Offset(image.offset + 1), Epoch(0))
        groups.follow(image, image.take_delta())
        assert await committed(client, "g") == {("u", 0): 3}
        await until(lambda: list(home(machine, "g").shard.table.offsets["g"]) == [("u", 0)])

    walk(steps)


def test_offsets_and_groups_are_deleted_when_nobody_uses_them() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        epoch = (await consumer_heartbeat(client, "g", "me", 0, "t")).member_epoch
        assert await commit(client, "g", "t", 3, member_id="me", epoch=epoch) == NONE.code
        made = OffsetDeleteRequest
        wanted = made.OffsetDeleteRequestTopic(
            name="t", partitions=[made.OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)]
        )
        reply = await client.ask(made(group_id="g", topics=[wanted]))
        assert {each.partition_index: each.error_code for each in reply.topics[0].partitions} == {
            0: GROUP_SUBSCRIBED_TO_TOPIC.code,
            9: UNKNOWN_TOPIC_OR_PARTITION.code,
        }
        assert await deleted(client, "g", "nobody") == [NON_EMPTY_GROUP.code, GROUP_ID_NOT_FOUND.code]
        await consumer_heartbeat(client, "g", "me", -1)
        assert (await client.ask(made(group_id="g", topics=[wanted]))).topics[0].partitions[1].error_code == NONE.code
        assert await committed(client, "g") == {}
        assert await deleted(client, "g") == [NONE.code]
        assert (await client.ask(made(group_id="g", topics=[wanted]))).error_code == GROUP_ID_NOT_FOUND.code

    walk(steps)


async def deleted(client: Client, *groups: str) -> list[int]:
    reply = await client.ask(DeleteGroupsRequest(groups_names=list(groups)))
    return [each.error_code for each in reply.results]


# -- seeing


def test_groups_are_listed_by_state_and_type() -> None:
    no = Recording(
        Asked(Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"),
        Asked(Operation.DESCRIBE, ResourceType.GROUP, "secret"),
    )

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        await join(client, "old")
        await consumer_heartbeat(client, "new", "me", 0, "t")
        await commit(client, "none", "t", 1)
        await commit(client, "secret", "t", 1)

        async def listed(**filters: list[str]) -> set[tuple[str, str, str]]:
            reply = await client.ask(ListGroupsRequest(**filters))
            return {(each.group_id, each.group_state, each.group_type) for each in reply.groups}

        old, new = ("old", "CompletingRebalance", "classic"), ("new", "Stable", "consumer")
        none = ("none", "Empty", "classic")
        assert await listed() == {old, new, none}
        assert await listed(states_filter=["empty", "STABLE"]) == {new, none}
        assert await listed(types_filter=["Classic"]) == {old, none}
        assert await listed(states_filter=["stable"], types_filter=["classic"]) == set()
        assert await listed(types_filter=["share"]) == set()

    walk(steps, authorizer=no)


def test_a_group_that_is_not_there_is_dead_or_not_found() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        (dead,) = (await client.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
        assert (dead.error_code, dead.group_state) == (NONE.code, "Dead")
        (missing,) = (await client.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups
        assert (missing.error_code, bool(missing.error_message)) == (GROUP_ID_NOT_FOUND.code, True)

    walk(steps)


def test_who_does_not_get_in_is_told_no_protocol_and_a_nameless_group_has_no_members() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await coordinator(client, "g")
        for version, no_protocol in ((6, ""), (7, None)):
            refused = await client.ask(JoinGroupRequest(group_id="g", session_timeout_ms=1), version)
            assert (refused.error_code, refused.protocol_name) == (INVALID_SESSION_TIMEOUT.code, no_protocol)
        await client.create("orders")
        made = OffsetCommitRequest
        done = made.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = made.OffsetCommitRequestTopic(name="orders", partitions=[done])
        await client.ask(made(group_id="", topics=[topic]), 8)
        assert (await client.ask(HeartbeatRequest(group_id=""), 4)).error_code == INVALID_GROUP_ID.code

    walk(steps)


# -- what lasts


async def set_on_offsets(client: Client, name: str, value: str) -> None:
    """A config of the offsets topic."""
    made = IncrementalAlterConfigsRequest
    change = made.AlterableConfig(name=name, config_operation=0, value=value)
    wanted = made.AlterConfigsResource(resource_type=2, resource_name=OFFSETS_TOPIC, configs=[change])
    (result,) = (await client.ask(made(resources=[wanted]))).responses
    assert result.error_code == NONE.code


async def live_through(machine: Machine, steps: Any) -> None:
    """One life of a node."""
    await machine.start()
    async with asyncio.timeout(within(30)):
        await steps(await machine.dial())


def test_members_and_offsets_survive_a_restart() -> None:
    machine = Machine()
    seen: dict[str, Any] = {}

    async def before(client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        seen["joined"] = joined = await join(client, "g")
        await sync(client, "g", joined, **{joined.member_id: b"all"})
        seen["epoch"] = (await consumer_heartbeat(client, "c", "me", 0, "t")).member_epoch
        for group in ("x", "y", "z"):
            assert await commit(client, group, "t", len(group)) == NONE.code
        assert await commit(client, "g", "t", 9, member_id=joined.member_id, epoch=joined.generation_id) == NONE.code
        await machine.stop()

    async def after(client: Client) -> None:
        assert (await heartbeat(client, "g", seen["joined"])).error_code == NONE.code
        again = await sync(client, "g", seen["joined"])
        assert (again.error_code, again.assignment) == (NONE.code, b"all")
        assert (await consumer_heartbeat(client, "c", "me", seen["epoch"])).error_code == NONE.code
        assert await committed(client, "g") == {("t", 0): 9}
        assert await committed(client, "y") == {("t", 0): 1}
        await machine.stop()

    asyncio.run(live_through(machine, before))
    asyncio.run(live_through(machine, after))


@pytest.mark.parametrize("seed", range(3))
def test_no_committed_offset_is_lost_when_the_power_fails(seed: int) -> None:
    """The offsets topic syncs before it answers here: what was answered is what must be there."""
    machine = Machine(seed=seed)
    chance = Random(seed)
    told: dict[str, int] = {}

    async def before(client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        await set_on_offsets(client, "flush.messages", "1")
        clients = [client, *[await machine.dial() for _ in range(3)]]

        async def committing(each: Client, group: str) -> None:
            for offset in range(1, 40):
                assert await commit(each, group, "t", offset) == NONE.code
                told[group] = offset

        running = [asyncio.ensure_future(committing(each, f"g{number}")) for number, each in enumerate(clients)]
        await until(lambda: sum(told.values()) >= 20 + seed * 25)
        for task in running:
            task.cancel()
        await machine.cut_power(lambda _path, unsynced: chance.randrange(unsynced + 1))

    async def after(client: Client) -> None:
        for group, offset in told.items():
            assert (await committed(client, group))[("t", 0)] >= offset
        await machine.stop()

    asyncio.run(live_through(machine, before))
    asyncio.run(live_through(machine, after))


def test_what_is_not_committed_is_not_shown() -> None:
    """While the disk hangs, a commit that must be synced is neither answered nor visible to anybody else."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        await set_on_offsets(client, "flush.messages", "1")
        other = await machine.dial()
        machine.offload.hold()
        writing = asyncio.ensure_future(commit(client, "g", "t", 5))
        await until(lambda: home(machine, "g").end > 0)
        reading = asyncio.ensure_future(committed(other, "g"))
        third = await machine.dial()
        assert (await heartbeat_of_nobody(third)) == UNKNOWN_MEMBER_ID.code
        assert not writing.done()
        assert not reading.done()
        machine.offload.release()
        assert await writing == NONE.code
        assert await reading == {("t", 0): 5}

    walk(steps)


async def heartbeat_of_nobody(client: Client) -> int:
    """Somebody whose group lives in another partition, where everything is committed."""
    return int((await client.ask(HeartbeatRequest(group_id="elsewhere", generation_id=1, member_id="m"))).error_code)


def test_a_commit_that_is_not_replicated_in_time_is_told_so() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        await set_on_offsets(client, "flush.messages", "1")
        machine.offload.hold()
        assert await commit(client, "g", "t", 5) == COORDINATOR_NOT_AVAILABLE.code
        machine.offload.release()
        assert await committed(client, "g") == {("t", 0): 5}

    walk(steps, offsets_commit_timeout_ms="20")


# -- losing a shard


def test_a_shard_that_moves_away_sends_its_members_after_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        joined = await join(client, "g")
        await sync(client, "g", joined, **{joined.member_id: b"all"})
        other = await machine.dial()
        waiting = join(other, "g")
        index = machine.node.broker.groups.home_of("g")
        await until(lambda: home(machine, "g").shard.table.groups["g"].state_name() == "PreparingRebalance")
        hand_over(machine, index, leader=2)
        assert (await waiting).error_code == NOT_COORDINATOR.code
        assert (await heartbeat(client, "g", joined)).error_code == NOT_COORDINATOR.code
        assert await commit(client, "g", "t", 1) == NOT_COORDINATOR.code
        hand_over(machine, index, leader=1)
        assert (await heartbeat(client, "g", joined)).error_code == NONE.code

    walk(steps)


def test_a_leader_that_leads_on_in_another_epoch_keeps_its_groups_and_whoever_waits_for_them() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        joined = await join(client, "g")
        await sync(client, "g", joined, **{joined.member_id: b"all"})
        other = await machine.dial()
        waiting = join(other, "g")
        await until(lambda: home(machine, "g").shard.table.groups["g"].state_name() == "PreparingRebalance")
        shard, epoch = home(machine, "g").shard, home(machine, "g").epoch
        hand_over(machine, machine.node.broker.groups.home_of("g"), leader=1)
        assert (home(machine, "g").shard, home(machine, "g").epoch) == (shard, epoch + 1)
        again = await join(client, "g", joined.member_id)
        assert (again.error_code, (await waiting).error_code) == (NONE.code, NONE.code)

    walk(steps)


def hand_over(machine: Machine, index: int, *, leader: int) -> None:
    """Publishes another leader of one partition, as if the controller had elected it."""
    node = machine.node
    topic = node.control.metadata.image.topic(OFFSETS_TOPIC)
    assert topic is not None
    now = topic.partitions[index]
    topic.partitions[index] = now._replace(
        leader=NodeId(leader), leader_epoch=now.leader_epoch + 1, partition_epoch=now.partition_epoch + 1
    )
    delta = Delta(partitions={topic.id: {index}})
    node.partitions.publish(node.control.metadata.image, delta)
    node.broker.groups.follow(node.control.metadata.image, delta)


def test_a_shard_that_breaks_is_loaded_again(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        assert await commit(client, "g", "t", 5) == NONE.code
        broken = home(machine, "g").shard

        def fails(_record: object, _offset: int) -> None:
            raise ValueError("cannot be applied")

        broken.apply = fails
        assert await commit(client, "g", "t", 6) == -1
        assert await committed(client, "g") == {("t", 0): 6}, "it is in the log"
        assert home(machine, "g").shard is not broken

    walk(steps)
    assert "loaded again" in caplog.text


def test_a_removal_that_the_log_refuses_costs_the_shard_and_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        assert await commit(client, "g", "t", 5) == NONE.code
        await set_on_offsets(client, "max.message.bytes", "1")
        before = home(machine, "g").shard
        await client.delete("t")
        await until(lambda: home(machine, "g").shard is not before)
        await set_on_offsets(client, "max.message.bytes", "100000")
        assert await committed(client, "g") == {}

    walk(steps)
    assert "is loaded again" in caplog.text
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_write_that_does_not_fit_costs_the_shard_but_no_offset() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        await set_on_offsets(client, "max.message.bytes", "200")
        assert await commit(client, "g", "t", 5) == NONE.code
        before = home(machine, "g").shard
        (result,) = (await client.ask(big_commit(300), 9)).topics
        assert result.partitions[0].error_code == UNKNOWN_SERVER_ERROR.code
        assert await committed(client, "g") == {("t", 0): 5}
        assert home(machine, "g").shard is not before

    walk(steps)


def big_commit(note_bytes: int) -> OffsetCommitRequest:
    made = OffsetCommitRequest
    done = made.OffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata="x" * note_bytes)
    return made(group_id="g", topics=[made.OffsetCommitRequestTopic(name="t", partitions=[done])])


def test_a_group_cannot_write_while_replicas_are_missing() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        joined = await join(client, "g")
        await sync(client, "g", joined, **{joined.member_id: b"all"})
        shard, index = home(machine, "g").shard, machine.node.broker.groups.home_of("g")
        state = machine.node.partitions.named(OFFSETS_TOPIC, index).state
        in_sync, state.isr = state.isr, frozenset()
        assert await commit(client, "g", "t", 5) == COORDINATOR_NOT_AVAILABLE.code
        assert await deleted(client, "g") == [COORDINATOR_NOT_AVAILABLE.code]
        assert (await heartbeat(client, "g", joined)).error_code == NONE.code
        state.isr = in_sync
        assert home(machine, "g").shard is shard, "nothing was lost"

    walk(steps)


def test_who_comes_while_groups_are_loaded_is_told_to_wait() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        joined = await join(client, "g")
        loading = home(machine, "g")
        loading._loading, loading._hurried = itertools.repeat(None), True
        wait = COORDINATOR_LOAD_IN_PROGRESS.code
        assert await commit(client, "g", "t", 5) == wait
        assert (await join(client, "g")).error_code == wait
        assert (await client.ask(ListGroupsRequest())).error_code == wait
        (shown,) = (await client.ask(DescribeGroupsRequest(groups=["g"]))).groups
        assert shown.error_code == wait
        assert (await heartbeat(client, "g", joined)).error_code == NONE.code, "taken on trust"

    walk(steps)


def test_a_log_that_cannot_be_replayed_has_no_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        assert await commit(client, "g", "t", 5) == NONE.code
        index = machine.node.broker.groups.home_of("g")
        hosted = machine.node.partitions.named(OFFSETS_TOPIC, index)
        batch = bytearray(batch_of(b"\0\4rubbish", key=b"\0\1rubbish"))
        hosted.append(batch, read_header(batch), -1, SystemClock().now_ms())
        hand_over(machine, index, leader=2)
        hand_over(machine, index, leader=1)
        assert await commit(client, "g", "t", 6) == NOT_COORDINATOR.code
        assert (await client.ask(ListGroupsRequest())).error_code == NONE.code

    walk(steps)
    assert "cannot be replayed" in caplog.text


def test_records_are_those_of_the_offsets_topic() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await coordinator(client, "g")
        assert await commit(client, "g", "t", 5) == NONE.code
        log = machine.node.partitions.named(OFFSETS_TOPIC, machine.node.broker.groups.home_of("g")).require_log()
        read = log.read(0, max_bytes=1 << 20, limit=log.committed, at_least_one=True)
        data = b"".join(span.read() for span in read.spans)
        ((start, header),) = scan_batches(data)
        (record,) = read_records(data[start : start + header.size])
        state = GROUP_READER.read(record.key, record.value)
        assert state is not None
        assert (state.key.group, state.key.topic, state.value.offset, state.value.metadata) == ("g", "t", 5, "note")

    walk(steps)
