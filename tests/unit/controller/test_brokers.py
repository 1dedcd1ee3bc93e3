"""Bootstrap, registration, heartbeats, fencing, shutdown: the life of a cluster of one, as Kafka's own log has it."""

from __future__ import annotations

import pytest

from penstock.controller import brokers
from penstock.controller.decision import Decision
from penstock.controller.sessions import LOST_LINK_PART
from penstock.metadata.entities import RECOVERING, PartitionImage
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REGISTRATION,
    STALE_BROKER_EPOCH,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.protocol.disk.metadata_brokers import BrokerRegistrationChangeRecord
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord, NoOpRecord
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from penstock.protocol.disk.metadata_transactions import BeginTransactionRecord, EndTransactionRecord
from penstock.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest
from penstock.protocol.messages.controller_registration import ControllerRegistrationRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.unit.controller.desk import CLUSTER, Desk, assigned, creation, registration, uuid_of


def test_the_first_controller_bootstraps_the_cluster_in_one_transaction() -> None:
    assert Desk().log == [
        BeginTransactionRecord(name="Bootstrap records"),
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        EndTransactionRecord(),
    ]


def test_a_later_controller_finds_it_bootstrapped() -> None:
    desk = Desk()
    assert desk.controller.activate(1).records == []


def test_an_idle_controller_writes_no_ops() -> None:
    assert Desk().controller.decide_no_op().records == [(NoOpRecord(), 0)]


def test_a_broker_epoch_is_the_offset_of_its_registration_and_it_starts_fenced() -> None:
    desk = Desk()
    reply = desk.register(1)
    assert (reply.error_code, reply.broker_epoch) == (0, 7)
    assert desk.image.brokers[1].fenced


def test_a_caught_up_broker_is_unfenced() -> None:
    desk = Desk()
    desk.register(1)
    waiting = desk.heartbeat(1, current_metadata_offset=6)
    assert (waiting.is_caught_up, waiting.is_fenced) == (False, True)
    reply = desk.heartbeat(1, current_metadata_offset=7, cordoned_log_dirs=[])
    assert (reply.is_caught_up, reply.is_fenced, reply.should_shut_down) == (True, False, False)
    assert desk.log[-2:] == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, cordoned_log_dirs=[]),
    ]
    before = len(desk.log)
    desk.heartbeat(1, cordoned_log_dirs=[])
    assert len(desk.log) == before


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (registration(1, cluster_id="other"), INCONSISTENT_CLUSTER_ID),
        (registration(1, log_dirs=[]), INVALID_REGISTRATION),
        (registration(1, log_dirs=[uuid_of(1), uuid_of(1)]), INVALID_REGISTRATION),
        (registration(1, log_dirs=[bytes(16)]), INVALID_REGISTRATION),
        (registration(1, log_dirs=[uuid_of(5002)]), INVALID_REGISTRATION),
        (registration(1, features=[]), UNSUPPORTED_VERSION),
        (registration(1, is_migrating_zk_broker=True), UNSUPPORTED_VERSION),
        (registration(2, life=1), DUPLICATE_BROKER_REGISTRATION),
    ],
)
def test_a_registration_that_cannot_be_is_refused(request_: BrokerRegistrationRequest, error: ErrorCode) -> None:
    desk = Desk()
    desk.join(2)
    decision = desk.decide(request_)
    assert (decision.records, decision.reply.error_code) == ([], error.code)


def test_a_cluster_that_kafka_formatted_takes_us_although_it_has_features_we_do_not_serve() -> None:
    desk = Desk()
    levels = {"share.version": 1, "streams.version": 1}
    records = [(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels.items()]
    desk.do(Decision(records))
    assert desk.register(1).error_code == 0


def test_the_same_process_keeps_its_epoch() -> None:
    desk = Desk()
    desk.join(1)
    epoch = desk.image.brokers[1].epoch
    assert desk.register(1).broker_epoch == epoch
    assert not desk.image.brokers[1].fenced


def test_a_new_process_may_take_over_after_the_session() -> None:
    desk = Desk()
    desk.join(1)
    desk.now = 8_999
    assert desk.register(1, life=1).error_code == DUPLICATE_BROKER_REGISTRATION.code
    desk.now = 9_000
    assert desk.register(1, life=1).error_code == 0


def test_a_new_controller_does_not_hold_a_session_it_never_saw_against_a_new_process() -> None:
    desk = Desk()
    desk.join(1)
    desk.controller.activate(desk.now)
    assert desk.register(1, life=1).error_code == 0


def test_a_stale_epoch_is_told_so() -> None:
    desk = Desk()
    desk.join(1)
    reply = desk.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=99))
    assert reply.error_code == STALE_BROKER_EPOCH.code
    assert desk.ask(BrokerHeartbeatRequest(broker_id=7, broker_epoch=99)).error_code == STALE_BROKER_EPOCH.code


def test_a_cluster_of_one_shuts_down_as_kafkas_does() -> None:
    desk = Desk()
    desk.join(1)
    desk.create("t")
    topic_id, epoch = desk.image.ids["t"], desk.image.brokers[1].epoch
    before = len(desk.log)
    reply = desk.heartbeat(1, want_shut_down=True)
    assert (reply.should_shut_down, reply.is_fenced) == (False, False)
    assert desk.log[before:] == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
        PartitionChangeRecord(
            topic_id=topic_id, partition_id=0, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
        ),
    ]
    reply = desk.heartbeat(1, want_shut_down=True)
    assert (reply.should_shut_down, reply.is_fenced) == (True, True)
    assert desk.log[-1] == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)


def test_after_a_clean_stop_the_broker_leads_again_cleanly_and_at_once() -> None:
    desk = Desk()
    desk.join(1)
    desk.create("t")
    epoch = desk.image.brokers[1].epoch
    desk.heartbeat(1, want_shut_down=True)
    desk.heartbeat(1, want_shut_down=True)
    assert desk.register(1, life=1, previous=epoch).error_code == 0
    desk.heartbeat(1)
    partition = desk.image.partition(desk.image.ids["t"], 0)
    assert partition is not None
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (1, (1,), (), ())
    assert (partition.leader_recovery_state, partition.leader_epoch) == (0, 2)


def test_after_a_crash_the_last_leader_leads_again_and_says_it_recovers() -> None:
    desk = Desk()
    desk.join(1)
    desk.create("t")
    desk.controller.activate(desk.now)
    assert desk.register(1, life=1, previous=-1).error_code == 0
    gone = desk.image.partition(desk.image.ids["t"], 0)
    assert gone is not None
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_elr) == (-1, (), (), (1,))
    desk.heartbeat(1)
    back = desk.image.partition(desk.image.ids["t"], 0)
    assert back is not None
    assert (back.leader, back.isr, back.last_known_elr, back.leader_recovery_state) == (1, (1,), (), RECOVERING)


def test_a_silent_broker_is_fenced_and_its_partitions_move() -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 4, 2)
    assert desk.controller.next_deadline() == 9_000
    desk.now = 5_000
    desk.heartbeat(2)
    assert desk.controller.decide_tick(8_999).records == []
    desk.do(desk.controller.decide_tick(9_000))
    assert (desk.image.brokers[1].fenced, desk.image.brokers[2].fenced) == (True, False)
    made = desk.image.topic("t")
    assert made is not None
    assert {(each.leader, each.isr) for each in made.partitions} == {(2, (2,))}
    assert desk.controller.next_deadline() == 14_000


def test_a_broker_whose_link_broke_is_missed_sooner_unless_it_is_heard_of_again() -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.now = 1_000
    desk.heartbeat(1)
    desk.heartbeat(2)
    epoch = desk.image.brokers[1].epoch
    desk.controller.link_lost(1, epoch - 1, 1_500)
    assert desk.controller.next_deadline() == 10_000, "the link of an earlier process says nothing about this one"
    desk.controller.link_lost(1, epoch, 2_000)
    assert desk.controller.next_deadline() == 2_000 + 9_000 / LOST_LINK_PART
    desk.now = 2_100
    desk.heartbeat(1)
    assert desk.controller.next_deadline() == 10_000
    desk.controller.link_lost(1, epoch, 3_000)
    desk.do(desk.controller.decide_tick(3_000 + 9_000 / LOST_LINK_PART))
    assert (desk.image.brokers[1].fenced, desk.image.brokers[2].fenced) == (True, False)


def test_a_broker_with_followers_leaves_when_everybody_has_seen_it() -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 4, 2)
    assert not desk.heartbeat(1, want_shut_down=True).should_shut_down
    left_at = len(desk.log) - 1
    desk.heartbeat(2, current_metadata_offset=left_at - 1)
    assert not desk.heartbeat(1, want_shut_down=True).should_shut_down
    desk.heartbeat(2, current_metadata_offset=left_at)
    assert desk.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_fenced_broker_may_stop_at_once() -> None:
    desk = Desk()
    desk.register(1)
    assert desk.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_broker_may_ask_to_be_fenced() -> None:
    desk = Desk()
    desk.join(1)
    assert desk.heartbeat(1, want_fence=True).is_fenced
    assert desk.image.brokers[1].fenced


def test_a_failed_directory_takes_its_replicas_out_of_service() -> None:
    desk = Desk()
    desk.join(1)
    desk.register(2, log_dirs=[uuid_of(6000), uuid_of(6001)])
    desk.heartbeat(2)
    desk.create("t", 2, 2)
    made = desk.image.topic("t")
    assert made is not None
    bad = next(index for index, each in enumerate(made.partitions) if each.leader == 2)
    _assign(desk, 2, uuid_of(6000), {bad})
    _assign(desk, 2, uuid_of(6001), {1 - bad})
    desk.heartbeat(2, offline_log_dirs=[uuid_of(6000)])
    assert desk.image.brokers[2].log_dirs == (uuid_of(6001),)
    assert (made.partitions[bad].leader, made.partitions[bad].isr) == (1, (1,))
    assert 2 in made.partitions[1 - bad].isr


Request = AssignReplicasToDirsRequest


def _assign(desk: Desk, broker: int, directory: bytes, partitions: set[int]) -> None:
    asked = [Request.PartitionData(partition_index=index) for index in partitions]
    topics = [Request.TopicData(topic_id=desk.image.ids["t"], partitions=asked)]
    reply = desk.ask(
        Request(
            broker_id=broker,
            broker_epoch=desk.image.brokers[broker].epoch,
            directories=[Request.DirectoryData(id=directory, topics=topics)],
        )
    )
    assert {each.error_code for each in reply.directories[0].topics[0].partitions} == {0}


def test_an_unregistered_broker_is_forgotten() -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 2, 2)
    assert desk.ask(UnregisterBrokerRequest(broker_id=2)).error_code == 0
    assert list(desk.image.brokers) == [1]
    made = desk.image.topic("t")
    assert made is not None
    assert {(each.leader, each.isr) for each in made.partitions} == {(1, (1,))}
    assert desk.ask(UnregisterBrokerRequest(broker_id=2)).error_code == BROKER_ID_NOT_REGISTERED.code


def test_a_controller_registers() -> None:
    desk = Desk()
    request = ControllerRegistrationRequest(
        controller_id=1,
        incarnation_id=uuid_of(3),
        listeners=[ControllerRegistrationRequest.Listener(name="CONTROLLER", host="127.0.0.1", port=9093)],
    )
    assert desk.ask(request).error_code == 0
    assert desk.image.controllers[1].endpoints[0].port == 9093
    assert desk.controller.settings.cluster_id == CLUSTER


def _the(desk: Desk, index: int = 0) -> PartitionImage:
    found = desk.image.partition(desk.image.ids["t"], index)
    assert found is not None
    return found


def _three(**properties: str) -> Desk:
    """Brokers 1, 2 and 3 with a partition that 1 leads."""
    desk = Desk(**properties)
    desk.join(1, 2, 3)
    desk.ask(creation(assigned("t", {0: [1, 2, 3]})))
    return desk


def test_a_process_that_died_while_starting_does_not_keep_out_the_next() -> None:
    desk = Desk()
    desk.register(1)
    assert desk.register(1, life=1).error_code == 0


def test_a_crashed_process_that_is_back_is_neither_in_sync_nor_eligible() -> None:
    desk = _three(min_insync_replicas="2")
    epoch = desk.image.brokers[3].epoch
    for broker in (2, 3):
        desk.heartbeat(broker, want_fence=True)
    assert (_the(desk).isr, _the(desk).elr) == ((1,), (3,))
    assert desk.register(3, life=1, previous=epoch - 1).error_code == 0
    assert _the(desk).elr == ()


def test_one_that_proves_its_clean_stop_stays_eligible() -> None:
    desk = _three(min_insync_replicas="2")
    epoch = desk.image.brokers[3].epoch
    for broker in (2, 3):
        desk.heartbeat(broker, want_fence=True)
    assert desk.register(3, life=1, previous=epoch).error_code == 0
    assert _the(desk).elr == (3,)
    desk.heartbeat(3)
    desk.heartbeat(1, want_fence=True)
    assert (_the(desk).leader, _the(desk).isr, _the(desk).elr) == (3, (3,), (1,))


def test_the_version_that_cannot_prove_it_is_not_believed() -> None:
    desk = _three(min_insync_replicas="2")
    epoch = desk.image.brokers[3].epoch
    for broker in (2, 3):
        desk.heartbeat(broker, want_fence=True)
    desk.ask(registration(3, life=1, previous=epoch), version=2)
    assert _the(desk).elr == ()


def test_whoever_was_unregistered_is_not_believed_to_have_anything() -> None:
    desk = _three(min_insync_replicas="2")
    for broker in (2, 3):
        desk.heartbeat(broker, want_fence=True)
    assert desk.ask(UnregisterBrokerRequest(broker_id=3)).error_code == 0
    assert (_the(desk).replicas, _the(desk).elr) == ((1, 2, 3), ())
    assert desk.register(3).error_code == 0
    desk.heartbeat(3)
    desk.heartbeat(1, want_fence=True)
    assert (_the(desk).leader, _the(desk).elr) == (-1, (1,))


def test_a_live_broker_that_is_unregistered_has_to_register_again() -> None:
    desk = _three()
    epoch = desk.image.brokers[1].epoch
    desk.ask(UnregisterBrokerRequest(broker_id=1))
    assert _the(desk).leader == 2
    late = desk.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch))
    assert late.error_code == STALE_BROKER_EPOCH.code
    assert desk.register(1).broker_epoch > epoch


def test_a_partition_without_a_leader_gets_one_when_it_comes_back() -> None:
    desk = _three(min_insync_replicas="3")
    for broker in (3, 2, 1):
        desk.heartbeat(broker, want_fence=True)
    assert (_the(desk).leader, _the(desk).elr, _the(desk).last_known_elr) == (-1, (1, 2, 3), (1,))
    desk.heartbeat(2)
    assert (_the(desk).leader, _the(desk).isr, _the(desk).elr) == (2, (2,), (1, 3))


def test_a_directory_that_failed_meanwhile_is_reported_before_the_broker_serves() -> None:
    desk = Desk()
    directories = [uuid_of(6000), uuid_of(6001)]
    desk.register(1, log_dirs=directories)
    desk.heartbeat(1)
    desk.create("t")
    _assign(desk, 1, directories[0], {0})
    desk.heartbeat(1, want_fence=True)
    assert _the(desk).leader == -1
    assert desk.heartbeat(1, offline_log_dirs=directories[:1]).is_fenced
    assert not desk.heartbeat(1, offline_log_dirs=directories[:1]).is_fenced
    assert _the(desk).leader == -1


def test_a_broker_of_many_partitions_leaves_them_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "LEAVE_MAX", 4)
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 10, 2)
    desk.now = 5_000
    desk.heartbeat(2)
    sizes = []
    while (decision := desk.controller.decide_tick(9_000)).records:
        sizes.append(len(desk.do(decision)))
        assert desk.image.brokers[1].fenced == (len(sizes) == 3)
    assert sizes == [4, 4, 3]
    assert all(each.isr == (2,) for each in desk.image.topics[desk.image.ids["t"]].partitions)


def test_a_broker_that_is_heard_of_in_between_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "LEAVE_MAX", 4)
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 10, 2)
    desk.now = 8_999
    desk.heartbeat(2)
    desk.do(desk.controller.decide_tick(9_000))
    desk.heartbeat(1)
    assert desk.controller.decide_tick(9_001).records == []
    assert not desk.image.brokers[1].fenced


def test_a_controlled_shutdown_of_many_partitions_takes_several_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "LEAVE_MAX", 4)
    desk = Desk()
    desk.join(1, 2)
    desk.create("t", 10, 2)
    beats = 0
    while not desk.heartbeat(1, want_shut_down=True).should_shut_down:
        beats += 1
        desk.heartbeat(2)
    assert beats == 3
    assert all(each.isr == (2,) for each in desk.image.topics[desk.image.ids["t"]].partitions)


def test_last_members_that_are_only_remembered_do_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "LEAVE_MAX", 2)
    desk = Desk()
    desk.do(Decision([(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0), 0)]))
    desk.join(1, 2)
    desk.ask(creation(assigned("t", {index: [1] for index in range(5)})))
    desk.ask(creation(assigned("u", {0: [1, 2], 1: [1, 2]})))
    desk.now = 5_000
    desk.heartbeat(2)
    while (decision := desk.controller.decide_tick(9_000)).records:
        desk.do(decision)
    assert desk.image.brokers[1].fenced
    assert [each.isr for each in desk.image.topics[desk.image.ids["u"]].partitions] == [(2,), (2,)]
    assert [(each.isr, each.leader) for each in desk.image.topics[desk.image.ids["t"]].partitions] == [((1,), -1)] * 5


def test_a_new_controller_lets_nobody_go_before_it_has_heard_of_everybody() -> None:
    desk = _three()
    assert not desk.heartbeat(1, want_shut_down=True).should_shut_down
    desk.controller.activate(desk.now)
    assert not desk.heartbeat(1, want_shut_down=True).should_shut_down
    desk.heartbeat(2)
    assert not desk.heartbeat(1, want_shut_down=True).should_shut_down
    desk.heartbeat(3)
    assert desk.heartbeat(1, want_shut_down=True).should_shut_down


def test_what_a_broker_sent_before_it_was_let_go_does_not_bring_it_back() -> None:
    desk = Desk()
    desk.join(1)
    assert desk.heartbeat(1, want_shut_down=True).should_shut_down
    late = desk.heartbeat(1)
    assert (late.should_shut_down, late.is_fenced, desk.image.brokers[1].fenced) == (True, True, True)
    assert desk.register(1, life=1).error_code == 0
