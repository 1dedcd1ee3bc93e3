"""AlterConfigs, IncrementalAlterConfigs, UpdateFeatures, AllocateProducerIds."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.controller.levels import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from penstock.metadata.entities import ConfigKey
from penstock.model.config import AlterOp
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    INVALID_CONFIG,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    INVALID_UPDATE_VERSION,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord, ProducerIdsRecord
from penstock.protocol.disk.metadata_topics import ClearElrRecord
from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from penstock.protocol.messages.alter_configs import AlterConfigsRequest
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.update_features import UpdateFeaturesRequest
from tests.unit.controller.desk import Desk, assigned, creation

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def node() -> Desk:
    desk = Desk()
    desk.join(1)
    desk.create("t", 1, 1, retention_ms="1000")
    return desk


def change(type: int, name: str, *ops: tuple[str, AlterOp, str | None], **said: bool) -> IncrementalAlterConfigsRequest:
    request = IncrementalAlterConfigsRequest
    configs = [request.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in ops]
    resource = request.AlterConfigsResource(resource_type=type, resource_name=name, configs=configs)
    return request(resources=[resource], **said)


def replace(type: int, name: str, configs: dict[str, str | None]) -> AlterConfigsRequest:
    request = AlterConfigsRequest
    wanted = [request.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    return request(resources=[request.AlterConfigsResource(resource_type=type, resource_name=name, configs=wanted)])


def test_operations_change_what_they_name() -> None:
    desk = node()
    desk.ask(change(TOPIC, "t", ("segment.ms", AlterOp.SET, "5"), ("cleanup.policy", AlterOp.APPEND, "compact")))
    assert desk.image.config(TOPIC, "t") == {
        "retention.ms": "1000",
        "segment.ms": "5",
        "cleanup.policy": "delete,compact",
    }
    desk.ask(change(TOPIC, "t", ("retention.ms", AlterOp.DELETE, None), ("cleanup.policy", AlterOp.SUBTRACT, "delete")))
    assert desk.image.config(TOPIC, "t") == {"segment.ms": "5", "cleanup.policy": "compact"}


def test_an_unchanged_topic_config_makes_no_record_but_a_brokers_does() -> None:
    desk = node()
    assert desk.decide(change(TOPIC, "t", ("retention.ms", AlterOp.SET, "1000"))).records == []
    same = change(BROKER, "1", ("log.retention.ms", AlterOp.SET, "7"))
    desk.ask(same)
    assert len(desk.decide(same).records) == 1


def test_the_old_way_resets_what_it_does_not_name() -> None:
    desk = node()
    assert desk.do(desk.decide(replace(TOPIC, "t", {"segment.ms": "5"}))) == [
        ConfigRecord(resource_type=TOPIC, resource_name="t", name="segment.ms", value="5"),
        ConfigRecord(resource_type=TOPIC, resource_name="t", name="retention.ms", value=None),
    ]
    assert desk.image.config(TOPIC, "t") == {"segment.ms": "5"}


def test_validate_only_writes_nothing() -> None:
    decision = node().decide(change(TOPIC, "t", ("segment.ms", AlterOp.SET, "5"), validate_only=True))
    assert (decision.records, decision.reply.responses[0].error_code) == ([], 0)


def test_every_kind_of_resource_can_be_told() -> None:
    desk = node()
    desk.ask(change(BROKER, "", ("log.retention.ms", AlterOp.SET, "7")))
    desk.ask(change(GROUP, "g", ("consumer.session.timeout.ms", AlterOp.SET, "50000")))
    desk.ask(change(METRICS, "m", ("interval.ms", AlterOp.SET, "10000")))
    assert desk.image.config(BROKER, "")["log.retention.ms"] == "7"
    assert desk.image.configs[ConfigKey(GROUP, "g")] == {"consumer.session.timeout.ms": "50000"}
    assert desk.image.configs[ConfigKey(METRICS, "m")] == {"interval.ms": "10000"}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (change(TOPIC, "none", ("retention.ms", AlterOp.SET, "1")), UNKNOWN_TOPIC_OR_PARTITION),
        (change(TOPIC, "", ("retention.ms", AlterOp.SET, "1")), INVALID_REQUEST),
        (change(TOPIC, "a/b", ("retention.ms", AlterOp.SET, "1")), INVALID_TOPIC_EXCEPTION),
        (change(TOPIC, "t", ("retention.ms", AlterOp.SET, "soon")), INVALID_CONFIG),
        (change(TOPIC, "t", ("no.such", AlterOp.SET, "1")), INVALID_CONFIG),
        (change(TOPIC, "t", ("retention.ms", AlterOp.APPEND, "1")), INVALID_CONFIG),
        (change(TOPIC, "t", ("retention.ms", AlterOp.SET, None)), INVALID_REQUEST),
        (change(TOPIC, "t", ("a", AlterOp.SET, "1"), ("a", AlterOp.SET, "2")), INVALID_REQUEST),
        (change(BROKER, "x", ("log.retention.ms", AlterOp.SET, "1")), INVALID_REQUEST),
        (change(BROKER, "9", ("log.retention.ms", AlterOp.SET, "1")), BROKER_ID_NOT_REGISTERED),
        (change(BROKER, "1", ("log.dirs", AlterOp.SET, "/x")), INVALID_REQUEST),
        (change(BROKER, "1", ("min.insync.replicas", AlterOp.SET, "1")), INVALID_CONFIG),
        (change(BROKER, "", ("min.insync.replicas", AlterOp.DELETE, None)), INVALID_CONFIG),
        (replace(BROKER, "", {"log.retention.ms": "7"}), INVALID_CONFIG),
        (change(LOGGER, "1", ("root", AlterOp.SET, "INFO")), INVALID_REQUEST),
        (change(99, "1", ("root", AlterOp.SET, "INFO")), INVALID_REQUEST),
        (replace(TOPIC, "none", {}), UNKNOWN_TOPIC_OR_PARTITION),
        (replace(TOPIC, "t", {"retention.ms": None}), INVALID_REQUEST),
    ],
)
def test_a_config_that_cannot_be_is_refused_with_a_reason(request_: Any, error: ErrorCode) -> None:
    decision = node().decide(request_)
    result = decision.reply.responses[0]
    assert (decision.records, result.error_code, bool(result.error_message)) == ([], error.code, True)


def test_a_resource_named_twice_is_refused_twice() -> None:
    request = change(TOPIC, "t", ("segment.ms", AlterOp.SET, "5"))
    request.resources *= 2
    decision = node().decide(request)
    assert [each.error_code for each in decision.reply.responses] == [INVALID_REQUEST.code] * 2


def test_a_new_minimum_of_replicas_clears_who_was_eligible() -> None:
    desk = node()
    assert desk.do(desk.decide(change(TOPIC, "t", ("min.insync.replicas", AlterOp.SET, "2"))))[-1] == ClearElrRecord(
        topic_name="t"
    )
    assert desk.do(desk.decide(change(BROKER, "", ("min.insync.replicas", AlterOp.SET, "2"))))[-1] == ClearElrRecord()


def update(feature: str, level: int, kind: int = UPGRADE, **said: Any) -> UpdateFeaturesRequest:
    wanted = UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=[wanted], **said)


def test_a_feature_goes_down_when_asked_for_as_a_downgrade_and_up_again() -> None:
    desk = node()
    assert desk.do(desk.decide(update("group.version", 0, SAFE_DOWNGRADE))) == [
        FeatureLevelRecord(name="group.version", feature_level=0)
    ]
    assert "group.version" not in desk.image.features
    assert desk.decide(update("group.version", 1, validate_only=True)).records == []
    assert desk.ask(update("group.version", 1)).error_code == 0
    assert desk.image.features["group.version"] == 1


def test_what_is_there_already_changes_nothing() -> None:
    for request in (update("metadata.version", 30), update("kraft.version", 1), update("transaction.version", 2)):
        decision = node().decide(request)
        assert (decision.records, decision.reply.error_code) == ([], 0)


def test_version_zero_of_the_request_says_downgrade_with_a_flag() -> None:
    wanted = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=0, allow_downgrade=True)
    decision = node().decide(UpdateFeaturesRequest(feature_updates=[wanted]), 0)
    assert len(decision.records) == 1
    assert [each.feature for each in decision.reply.results] == ["group.version"]


def test_eligible_replicas_come_with_one_minimum_for_all() -> None:
    desk = node()
    desk.ask(update("eligible.leader.replicas.version", 0, SAFE_DOWNGRADE))
    assert desk.log[-1] == FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)
    desk.ask(change(BROKER, "1", ("min.insync.replicas", AlterOp.SET, "1")))
    desk.ask(change(BROKER, "", ("min.insync.replicas", AlterOp.DELETE, None)))
    desk.ask(update("eligible.leader.replicas.version", 1))
    assert desk.image.config(BROKER, "") == {"min.insync.replicas": "1"}
    assert desk.image.config(BROKER, "1") == {}


@pytest.mark.parametrize(
    "request_",
    [
        update("metadata.version", 31),
        update("metadata.version", 6, SAFE_DOWNGRADE),
        update("metadata.version", 0, UNSAFE_DOWNGRADE),
        update("metadata.version", 29),
        update("metadata.version", 29, SAFE_DOWNGRADE),
        update("group.version", 0),
        update("group.version", 1, 9),
        update("group.version", -1, SAFE_DOWNGRADE),
        update("transaction.version", 1),
        update("transaction.version", 3),
        update("share.version", 1),
        update("no.such.feature", 1),
        update("kraft.version", 0, SAFE_DOWNGRADE),
    ],
)
def test_a_level_that_cannot_be_is_refused_with_a_reason(request_: UpdateFeaturesRequest) -> None:
    decision = node().decide(request_)
    assert decision.records == []
    assert decision.reply.error_code == INVALID_UPDATE_VERSION.code
    assert decision.reply.error_message


def test_a_broker_that_cannot_follow_stops_an_upgrade() -> None:
    desk = node()
    desk.ask(update("group.version", 0, SAFE_DOWNGRADE))
    desk.join(2, features=[each for each in _features(desk) if each.name != "group.version"])
    reply = desk.ask(update("group.version", 1))
    assert (reply.error_code, "broker 2" in reply.error_message) == (INVALID_UPDATE_VERSION.code, True)


def _features(desk: Desk) -> list[Any]:
    return [
        BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in desk.image.brokers[1].features
    ]


def test_one_bad_update_stops_all() -> None:
    request = update("group.version", 0, SAFE_DOWNGRADE)
    request.feature_updates += update("no.such.feature", 1).feature_updates
    assert node().decide(request).records == []


def test_producer_ids_are_handed_out_in_blocks_that_never_overlap() -> None:
    desk = node()
    desk.join(2)
    blocks = []
    for broker in (1, 2, 1):
        epoch = desk.image.brokers[broker].epoch
        reply = desk.ask(AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch))
        blocks.append((reply.error_code, reply.producer_id_start, reply.producer_id_len))
        assert desk.log[-1] == ProducerIdsRecord(
            broker_id=broker, broker_epoch=epoch, next_producer_id=reply.producer_id_start + 1000
        )
    assert blocks == [(0, 0, 1000), (0, 1000, 1000), (0, 2000, 1000)]
    stale = desk.decide(AllocateProducerIdsRequest(broker_id=1, broker_epoch=0))
    assert (stale.records, stale.reply.error_code) == ([], STALE_BROKER_EPOCH.code)


def test_a_new_minimum_does_not_cost_a_leaderless_partition_its_records() -> None:
    desk = Desk(min_insync_replicas="2")
    desk.join(1, 2, 3)
    desk.ask(creation(assigned("dead", {0: [1]}), assigned("led", {0: [2, 3]})))
    for broker in (1, 3):
        desk.heartbeat(broker, want_fence=True)
    found = [desk.image.partition(desk.image.ids[name], 0) for name in ("dead", "led")]
    assert [(each.isr, each.elr) for each in found if each is not None] == [((), (1,)), ((2,), (3,))]
    desk.do(desk.decide(change(BROKER, "", ("min.insync.replicas", AlterOp.SET, "1"))))
    found = [desk.image.partition(desk.image.ids[name], 0) for name in ("dead", "led")]
    assert [(each.isr, each.elr) for each in found if each is not None] == [((), (1,)), ((2,), ())]
    desk.heartbeat(1)
    back = desk.image.partition(desk.image.ids["dead"], 0)
    assert back is not None
    assert (back.leader, back.leader_recovery_state) == (1, 0)


def test_eligible_replicas_are_given_up_only_where_somebody_else_leads() -> None:
    desk = Desk(min_insync_replicas="2")
    desk.join(1, 2)
    desk.ask(creation(assigned("dead", {0: [1]}), assigned("led", {0: [2, 1]})))
    desk.heartbeat(1, want_fence=True)
    off = update("eligible.leader.replicas.version", 0, SAFE_DOWNGRADE)
    refused = desk.ask(off)
    assert (refused.error_code, "dead-0" in refused.error_message) == (INVALID_UPDATE_VERSION.code, True)
    desk.heartbeat(1)
    assert desk.ask(off).error_code == 0
    led = desk.image.partition(desk.image.ids["led"], 0)
    assert led is not None
    assert (led.leader, led.elr) == (2, ())
