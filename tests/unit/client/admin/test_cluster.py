"""The Admin about the cluster: brokers, quorum, features, configs, directories, producers, offsets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.client.admin import Admin, ConfigResource
from penstock.client.errors import BadSetting, BrokerRefused, UnknownTopic
from penstock.client.producer import Producer
from penstock.model.errors import INVALID_REQUEST
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.unit.client.admin.conftest import Administer


def filled(shared: EmbeddedBroker, topic: str, count: int) -> None:
    async def main() -> None:
        async with Producer(bootstrap_servers=shared.bootstrap_servers) as producer:
            for number in range(count):
                producer.send(topic, b"v", partition=0, timestamp=1_000 + number)

    asyncio.run(main())


def test_the_controller_is_the_leader_of_the_quorum(administer: Administer, shared: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> Any:
        return await admin.describe_cluster(), await admin.describe_quorum()

    cluster, quorum = administer(work)
    assert (cluster.controller, cluster.controller_epoch) == (quorum.leader, quorum.epoch) == (1, 1)
    assert [f"{b.host}:{b.port}" for b in cluster.brokers] == [shared.bootstrap_servers]
    assert [(voter.id, voter.lag) for voter in quorum.voters] == [(1, 0)]


def test_features_have_levels_and_a_wrong_one_is_refused(administer: Administer) -> None:
    async def work(admin: Admin) -> Any:
        features = {feature.name: feature for feature in await admin.features()}
        with pytest.raises(BrokerRefused):
            await admin.update_features({"metadata.version": 99}, validate_only=True)
        return features

    found = administer(work)["metadata.version"]
    assert found.lowest <= found.finalized <= found.highest


def test_a_broker_tells_its_apis(administer: Administer) -> None:
    served = administer(lambda admin: admin.api_versions(1))
    assert served["Metadata"] == (0, 13)


def test_configs_of_everything_are_read_and_changed(administer: Administer) -> None:
    topic, cluster, group = ConfigResource.topic("configured"), ConfigResource.cluster(), ConfigResource.group("g")
    loggers, one = ConfigResource.loggers(1), ConfigResource.broker(1)

    async def work(admin: Admin) -> Any:
        await admin.create_topic("configured")
        changed = await admin.alter_configs(
            {
                topic: {"retention.ms": "5000"},
                cluster: {"log.retention.ms": "600000"},
                group: {"consumer.session.timeout.ms": "50000"},
                ConfigResource.topic("absent"): {"retention.ms": "1"},
                one: {"log.retention.ms": "soon"},
            }
        )
        found = await admin.describe_configs([topic, cluster, group, loggers, one])
        back = await admin.alter_configs({cluster: {"log.retention.ms": None}})
        return changed, found, back

    changed, found, back = administer(work)
    assert set(changed.done) == {topic, cluster, group}
    assert isinstance(changed.failed[ConfigResource.topic("absent")], UnknownTopic)
    assert changed.failed[one].error is INVALID_REQUEST
    assert (found.done[topic]["retention.ms"].value, found.done[topic]["retention.ms"].source) == ("5000", "topic")
    assert found.done[cluster]["log.retention.ms"].source == "cluster"
    assert found.done[group]["consumer.session.timeout.ms"].value == "50000"
    assert found.done[one]["log.retention.ms"].value == "600000"
    assert found.done[loggers]
    assert back.failed == {}


def test_lists_grow_and_shrink_by_item(administer: Administer) -> None:
    topic = ConfigResource.topic("policies")

    async def work(admin: Admin) -> list[str | None]:
        await admin.create_topic("policies", configs={"cleanup.policy": "delete"})
        values = []
        for options in ({"append": True}, {"subtract": True}):
            (await admin.alter_configs({topic: {"cleanup.policy": "compact"}}, **options)).checked()
            values.append((await admin.describe_configs([topic])).checked()[topic]["cleanup.policy"].value)
        return values

    assert administer(work) == ["delete,compact", "delete"]


def test_offsets_by_place_and_time(administer: Administer, shared: EmbeddedBroker) -> None:
    administer(lambda admin: admin.create_topic("timed", 1))
    filled(shared, "timed", 10)
    item, absent = TopicPartition("timed", 0), TopicPartition("timed", 9)

    async def work(admin: Admin) -> Any:
        found = {}
        for when in ("earliest", "latest", "max_timestamp", 1_004, 9_999):
            found[when] = (await admin.offsets({item: when})).checked()[item].offset
        missing = await admin.offsets({item: "latest", absent: "latest"})
        with pytest.raises(ValueError, match="no place in a log"):
            await admin.offsets({item: "newest"})
        return found, missing

    found, missing = administer(work)
    assert found == {"earliest": 0, "latest": 10, "max_timestamp": 9, 1_004: 4, 9_999: -1}
    assert list(missing.done) == [item]
    assert isinstance(missing.failed[absent], UnknownTopic)
    with pytest.raises(UnknownTopic, match="partition 9 of topic 'timed' does not exist"):
        missing.checked()


def test_records_are_deleted_and_producers_seen(administer: Administer, shared: EmbeddedBroker) -> None:
    administer(lambda admin: admin.create_topic("written", 1))
    filled(shared, "written", 10)
    item = TopicPartition("written", 0)

    async def work(admin: Admin) -> Any:
        (producer,) = (await admin.describe_producers([item])).checked()[item]
        starts = (await admin.delete_records({item: 4})).checked()
        everything = await admin.trim_topic("written", {0: -1})
        return producer, starts, everything

    producer, starts, everything = administer(work)
    assert (producer.last_sequence, producer.transaction_start) == (9, -1)
    assert starts == {item: 4}
    assert everything == {0: 10}


def test_directories_hold_replicas_and_a_move_to_nowhere_is_refused(administer: Administer) -> None:
    item = TopicPartition("stored", 0)

    async def work(admin: Admin) -> Any:
        await admin.create_topic("stored", 1)
        dirs = (await admin.describe_log_dirs(topics=["stored"])).checked()
        moved = await admin.move_replicas(1, {item: "/nowhere"})
        return dirs, moved

    dirs, moved = administer(work)
    (directory,) = dirs[1]
    assert [(replica.topic, replica.partition, replica.future) for replica in directory.replicas] == [
        ("stored", 0, False)
    ]
    assert 0 < directory.usable_bytes <= directory.total_bytes
    assert moved.failed[item].error.name == "LOG_DIR_NOT_FOUND"


def test_what_passes_is_waited_for(administer: Administer, shared: EmbeddedBroker) -> None:
    item = TopicPartition("waited", 0)
    administer(lambda admin: admin.create_topic("waited", 1))
    shared.fail(api="ListOffsets", code="NOT_LEADER_OR_FOLLOWER", times=2)
    found = administer(lambda admin: admin.offsets({item: "latest"}))
    assert found.checked()[item].offset == 0


def test_settings_are_checked_by_name() -> None:
    with pytest.raises(BadSetting, match="request_timeout_ms"):
        Admin(request_timeout=5)
    with pytest.raises(BadSetting, match="bootstrap_servers"):
        Admin(bootstrap_servers="host:port")
