"""The Admin about groups: list, describe, lag, move, forget, delete, remove members."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.client.admin import Admin, CommittedOffset
from penstock.client.consumer import Consumer
from penstock.client.errors import BrokerRefused
from penstock.model.errors import GROUP_ID_NOT_FOUND, GROUP_SUBSCRIBED_TO_TOPIC, NON_EMPTY_GROUP, UNKNOWN_MEMBER_ID
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.unit.client.admin.conftest import Administer

ITEMS = [TopicPartition("grouped", 0), TopicPartition("grouped", 1)]


@pytest.fixture(autouse=True, scope="module")
def topic(shared: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Admin(bootstrap_servers=shared.bootstrap_servers) as admin:
            await admin.create_topic("grouped", 2)

    asyncio.run(main())


def test_positions_are_moved_read_and_forgotten(administer: Administer) -> None:
    async def work(admin: Admin) -> Any:
        (await admin.alter_group_offsets("g", {ITEMS[0]: 3, ITEMS[1]: CommittedOffset(4, 0, "by hand")})).checked()
        moved = await admin.group_offsets("g")
        one = await admin.group_offsets("g", [ITEMS[1]])
        (await admin.delete_group_offsets("g", [ITEMS[0]])).checked()
        return moved, one, await admin.group_offsets("g"), await admin.groups()

    moved, one, left, groups = administer(work)
    assert moved == {ITEMS[0]: CommittedOffset(3), ITEMS[1]: CommittedOffset(4, 0, "by hand")}
    assert one == left == {ITEMS[1]: moved[ITEMS[1]]}
    assert [(g.id, g.state, g.type, g.coordinator) for g in groups if g.id == "g"] == [("g", "Empty", "classic", 1)]


def test_one_outcome_per_partition(administer: Administer) -> None:
    absent = TopicPartition("absent", 0)

    async def work(admin: Admin) -> Any:
        return await admin.alter_group_offsets("partly", {ITEMS[0]: 1, absent: 1})

    found = administer(work)
    assert list(found.done) == [ITEMS[0]]
    assert "partition 0 of topic 'absent' does not exist" in str(found.failed[absent])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_what_they_read(administer: Administer, shared: EmbeddedBroker, protocol: str) -> None:
    name = f"read-{protocol}"

    async def work(admin: Admin) -> Any:
        settings = {"bootstrap_servers": shared.bootstrap_servers, "group_id": name, "group_protocol": protocol}
        async with Consumer("grouped", offset_reset="earliest", **settings) as consumer:
            while len(consumer.assignment()) < 2:
                await consumer.poll(timeout_ms=50)
            described = await admin.describe_group(name)
            lag = await admin.group_lag(name)
            deleted = await admin.delete_groups([name])
            forgotten = await admin.delete_group_offsets(name, ITEMS)
            nobody = await admin.remove_members(name, ["nobody"])
        return described, lag, deleted, forgotten, nobody, await admin.delete_group(name)

    described, lag, deleted, forgotten, nobody, _ = administer(work)
    assert (described.type, described.state, described.coordinator) == (protocol, "Stable", 1)
    (member,) = described.members
    assert member.assignment == {"grouped": [0, 1]}
    assert member.subscription == ["grouped"]
    assert (described.epoch > 0, member.epoch > 0) == (protocol == "consumer", protocol == "consumer")
    assert [(each.partition, each.end, each.member_id) for each in lag] == [(0, 0, member.id), (1, 0, member.id)]
    assert deleted.failed[name].error is NON_EMPTY_GROUP
    assert {failure.error for failure in forgotten.failed.values()} <= {GROUP_SUBSCRIBED_TO_TOPIC}
    assert nobody.failed["nobody"].error is UNKNOWN_MEMBER_ID


def test_a_group_that_is_not_there_is_told(administer: Administer) -> None:
    async def work(admin: Admin) -> Any:
        found = await admin.describe_groups(["nobody", "g"])
        with pytest.raises(BrokerRefused, match="group 'nobody' does not exist"):
            await admin.delete_group("nobody")
        return found, await admin.group_offsets("nobody")

    found, offsets = administer(work)
    assert found.failed["nobody"].error is GROUP_ID_NOT_FOUND
    assert offsets == {}


def test_a_group_that_changes_its_kind_while_it_is_described_is_found(
    administer: Administer, shared: EmbeddedBroker
) -> None:
    async def work(admin: Admin) -> Any:
        settings = {"bootstrap_servers": shared.bootstrap_servers, "group_protocol": "consumer"}
        async with Consumer("grouped", group_id="changes", **settings) as consumer:
            while len(consumer.assignment()) < 2:
                await consumer.poll(timeout_ms=50)
            # As a group answers that is classic still when it is asked for the first time, and not for the second.
            shared.fail(api="ConsumerGroupDescribe", code="GROUP_ID_NOT_FOUND", times=1)
            return await admin.describe_groups(["changes", "nobody"])

    found = administer(work)
    assert found.done["changes"].type == "consumer"
    assert found.failed["nobody"].error is GROUP_ID_NOT_FOUND


def test_a_coordinator_that_loads_is_waited_for(administer: Administer, shared: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> Any:
        shared.fail(api="OffsetFetch", code="COORDINATOR_LOAD_IN_PROGRESS", times=2)
        return await admin.group_offsets("nobody")

    assert administer(work) == {}
