"""How partitions change: single rules, AlterPartition, ElectLeaders, and random walks that keep the invariants."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.controller.elections import Change, Election, plan_change, was_unclean
from penstock.metadata.entities import RECOVERING, PartitionImage
from penstock.metadata.image import ClusterImage, merge
from penstock.metadata.snapshot import image_of, snapshot_records
from penstock.model.errors import (
    ELECTION_NOT_NEEDED,
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.model.ids import Epoch
from penstock.protocol.messages.alter_partition import AlterPartitionRequest
from penstock.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.properties import examples
from tests.unit.controller.desk import Desk, assigned, creation, uuid_of

TOPIC = uuid_of(1)
WHOLE = PartitionImage(
    replicas=(1, 2, 3), directories=(uuid_of(1), uuid_of(2), uuid_of(3)), isr=(1, 2, 3), leader=1, leader_epoch=Epoch(5)
)


def after(old: PartitionImage, alive: set[int], *, min_isr: int = 2, elr: bool = True, **said: Any) -> PartitionImage:
    change = Change(acceptable=alive.__contains__, min_isr=min_isr, elr_enabled=elr, **said)
    record = plan_change(TOPIC, 0, old, change)
    return old if record is None else merge(old, record)


def test_nothing_to_do_makes_no_record() -> None:
    assert plan_change(TOPIC, 0, WHOLE, Change(acceptable={1, 2, 3}.__contains__, min_isr=2, elr_enabled=True)) is None


def test_the_first_in_sync_replica_in_assignment_order_takes_over() -> None:
    now = after(WHOLE, {2, 3}, isr=(3, 2))
    assert (now.leader, now.isr, now.leader_epoch, now.partition_epoch) == (2, (3, 2), 6, 1)


def test_a_shrinking_isr_does_not_bump_the_leader_epoch() -> None:
    now = after(WHOLE, {1, 2}, isr=(1, 2))
    assert (now.leader_epoch, now.partition_epoch, now.elr) == (5, 1, ())


def test_but_before_3_6_it_did() -> None:
    assert after(WHOLE, {1, 2}, isr=(1, 2), bump_epoch_on_shrink=True).leader_epoch == 6


def test_who_leaves_a_small_isr_stays_eligible() -> None:
    two = after(WHOLE, {1, 2}, isr=(1, 2))
    one = after(two, {1}, isr=(1,))
    assert (one.isr, one.elr) == ((1,), (2,))
    none = after(one, set(), isr=())
    assert (none.leader, none.isr, none.elr, none.last_known_elr) == (-1, (), (1, 2), (1,))
    back = after(none, {2})
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (2, (2,), (1,), ())
    assert back.leader_recovery_state == 0
    whole = after(back, {1, 2}, isr=(2, 1))
    assert (whole.isr, whole.elr) == ((2, 1), ())


def test_the_last_leader_is_remembered_though_somebody_is_in_sync_who_may_not_lead() -> None:
    """The directory of 2 is offline. When 1 and then 2 came back without a clean end, nobody else is known."""
    two = after(WHOLE, {1, 3}, isr=(1, 2))
    gone = after(two, {3}, isr=(2,))
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_elr) == (-1, (2,), (1,), (1,))
    back = after(gone, {3}, lost=frozenset({1}))
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (-1, (2,), (), (1,))
    both = after(back, {3}, isr=(), lost=frozenset({2}))
    assert (both.leader, both.isr, both.elr, both.last_known_elr) == (-1, (), (), (1,))
    led = after(both, {1, 2, 3})
    assert (led.leader, led.isr, led.last_known_elr, led.leader_recovery_state) == (1, (1,), (), RECOVERING)


def test_who_lost_its_log_is_not_eligible() -> None:
    one = after(WHOLE, {1}, isr=(1,))
    assert one.elr == (2, 3)
    assert after(one, {1}, lost=frozenset({2})).elr == (3,)


def test_without_eligible_replicas_the_last_member_stays_in_the_isr() -> None:
    one = after(WHOLE, {1}, isr=(1,), elr=False)
    none = after(one, {2, 3}, isr=(), elr=False)
    assert (none.leader, none.isr, none.elr) == (-1, (1,), ())


def test_an_unclean_election_takes_anybody_alive_and_says_so() -> None:
    one = after(WHOLE, {1}, isr=(1,), elr=False)
    taken = after(one, {3}, isr=(), elr=False, election=Election.UNCLEAN)
    assert (taken.leader, taken.isr, taken.leader_recovery_state) == (3, (3,), RECOVERING)


@pytest.mark.parametrize(
    ("old", "alive", "unclean"),
    [
        (WHOLE, {2}, False),
        (WHOLE._replace(isr=(1,)), {3}, True),
        (WHOLE._replace(isr=(), elr=(2,), leader=-1), {2, 3}, False),
        (WHOLE._replace(isr=(), leader=-1, leader_recovery_state=RECOVERING), {3}, True),
        (WHOLE, set(), False),
    ],
)
def test_an_election_is_unclean_when_its_winner_was_not_known_to_have_everything(
    old: PartitionImage, alive: set[int], unclean: bool
) -> None:
    isr = tuple(each for each in old.isr if each in alive)
    change = Change(lambda node: node in alive, 2, True, Election.UNCLEAN, isr=isr)
    record = plan_change(TOPIC, 0, old, change)
    assert record is not None
    assert was_unclean(old, record) is unclean


def test_the_preferred_leader_is_taken_back() -> None:
    moved = after(WHOLE, {2, 3}, isr=(2, 3))
    ready = after(moved, {1, 2, 3}, isr=(2, 3, 1))
    assert ready.leader == 2
    assert after(ready, {1, 2, 3}, election=Election.PREFERRED).leader == 1


def test_a_reassignment_ends_when_all_who_stay_are_in_sync() -> None:
    moving = WHOLE._replace(
        replicas=(4, 1, 2, 3), directories=(uuid_of(4), *WHOLE.directories), adding=(4,), removing=(3,)
    )
    assert after(moving, {1, 2, 3, 4}) == moving
    done = after(moving, {1, 2, 3, 4}, isr=(1, 2, 3, 4))
    assert (done.replicas, done.isr, done.adding, done.removing) == ((4, 1, 2), (1, 2, 4), (), ())
    assert done.directories == (uuid_of(4), uuid_of(1), uuid_of(2))
    assert done.leader_epoch == 6


def three() -> Desk:
    desk = Desk()
    desk.join(1, 2, 3)
    desk.ask(creation(assigned("t", {0: [1, 2, 3]})))
    return desk


def the(desk: Desk) -> PartitionImage:
    found = desk.image.partition(desk.image.ids["t"], 0)
    assert found is not None
    return found


def alter(desk: Desk, isr: list[tuple[int, int]], *, by: int = 1, **said: Any) -> Any:
    request = AlterPartitionRequest
    data = request.PartitionData(
        **{
            "leader_epoch": the(desk).leader_epoch,
            "partition_epoch": the(desk).partition_epoch,
            "new_isr_with_epochs": [request.BrokerState(broker_id=each, broker_epoch=epoch) for each, epoch in isr],
            **{name: value for name, value in said.items() if name not in ("topic_id", "broker_epoch")},
        }
    )
    topics = [request.TopicData(topic_id=said.get("topic_id", desk.image.ids["t"]), partitions=[data])]
    epoch = said.get("broker_epoch", desk.image.brokers[by].epoch)
    reply = desk.ask(request(broker_id=by, broker_epoch=epoch, topics=topics))
    return reply if reply.error_code else reply.topics[0].partitions[0]


def test_a_leader_shrinks_and_expands_its_isr() -> None:
    desk = three()
    shrunk = alter(desk, [(1, -1)])
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch, shrunk.leader_epoch) == (0, [1], 1, 0)
    grown = alter(desk, [(1, -1), (2, desk.image.brokers[2].epoch)])
    assert (grown.error_code, grown.isr, grown.partition_epoch) == (0, [1, 2], 2)


def test_a_leader_that_recovered_says_so() -> None:
    desk = Desk()
    desk.join(1)
    desk.create("t")
    desk.controller.activate(desk.now)
    desk.register(1, life=1)
    desk.heartbeat(1)
    assert the(desk).leader_recovery_state == RECOVERING
    assert alter(desk, [(1, -1)], leader_recovery_state=0).error_code == 0
    assert the(desk).leader_recovery_state == 0


def test_alterations_are_refused_in_kafkas_order() -> None:
    desk = three()
    alter(desk, [(1, -1), (2, -1)])
    desk.do(desk.decide(_election("t", 0)))
    all_three = [(1, -1), (2, -1), (3, -1)]
    assert alter(desk, all_three, broker_epoch=0).error_code == STALE_BROKER_EPOCH.code
    cases: list[tuple[list[tuple[int, int]], dict[str, Any], int]] = [
        (all_three, {"topic_id": uuid_of(77)}, UNKNOWN_TOPIC_ID.code),
        (all_three, {"partition_index": 5}, UNKNOWN_TOPIC_OR_PARTITION.code),
        (all_three, {"leader_epoch": 9}, NOT_CONTROLLER.code),
        (all_three, {"partition_epoch": 9}, NOT_CONTROLLER.code),
        (all_three, {"leader_epoch": -1}, FENCED_LEADER_EPOCH.code),
        (all_three, {"by": 2}, INVALID_REQUEST.code),
        (all_three, {"partition_epoch": 0}, INVALID_UPDATE_VERSION.code),
        ([(1, -1), (9, -1)], {}, INVALID_REQUEST.code),
        ([(2, -1)], {}, INVALID_REQUEST.code),
        ([(1, -1), (1, -1)], {}, INVALID_REQUEST.code),
        ([(1, -1)], {"leader_recovery_state": 1}, INVALID_REQUEST.code),
        ([(1, -1)], {"leader_recovery_state": 7}, INVALID_REQUEST.code),
        ([(1, -1), (2, 99)], {}, INELIGIBLE_REPLICA.code),
    ]
    assert [alter(desk, isr, **said).error_code for isr, said, _ in cases] == [code for _, _, code in cases]
    desk.heartbeat(3, want_fence=True)
    assert alter(desk, all_three).error_code == INELIGIBLE_REPLICA.code


def test_a_partition_is_altered_once_in_a_request() -> None:
    desk = three()
    request = AlterPartitionRequest
    data = [
        request.PartitionData(new_isr_with_epochs=[request.BrokerState(broker_id=each) for each in isr])
        for isr in ([1, 2], [1])
    ]
    asked = request(
        broker_id=1,
        broker_epoch=desk.image.brokers[1].epoch,
        topics=[request.TopicData(topic_id=desk.image.ids["t"], partitions=data)],
    )
    codes = [each.error_code for each in desk.ask(asked).topics[0].partitions]
    assert codes == [0, INVALID_UPDATE_VERSION.code]
    assert (the(desk).isr, the(desk).partition_epoch) == ((1, 2), 1)


def test_a_partition_named_twice_is_elected_for_once() -> None:
    desk = three()
    desk.heartbeat(1, want_fence=True)
    desk.heartbeat(1)
    alter(desk, [(1, -1), (2, -1), (3, -1)], by=2)
    epoch = the(desk).leader_epoch
    desk.ask(_election("t", 0, 0, 0))
    assert (the(desk).leader, the(desk).leader_epoch) == (1, epoch + 1)


def _election(topic: str | None, kind: int, *partitions: int) -> ElectLeadersRequest:
    wanted = None
    if topic is not None:
        wanted = [ElectLeadersRequest.TopicPartitions(topic=topic, partitions=list(partitions or (0,)))]
    return ElectLeadersRequest(election_type=kind, topic_partitions=wanted)


def test_an_election_that_is_asked_for_moves_or_says_why_not() -> None:
    desk = three()

    def results(request: ElectLeadersRequest) -> list[int]:
        reply = desk.ask(request)
        return [each.error_code for topic in reply.replica_election_results for each in topic.partition_result]

    assert results(_election("t", 0)) == [ELECTION_NOT_NEEDED.code]
    assert results(_election("t", 1)) == [ELECTION_NOT_NEEDED.code]
    assert results(_election("none", 0)) == [UNKNOWN_TOPIC_OR_PARTITION.code]
    assert results(_election("t", 0, 3)) == [UNKNOWN_TOPIC_OR_PARTITION.code]
    assert results(_election(None, 0)) == []
    assert results(ElectLeadersRequest(election_type=7, topic_partitions=[])) == []
    with pytest.raises(Refused, match="no election of type 7"):
        desk.ask(_election("t", 7))
    desk.heartbeat(1, want_fence=True)
    assert the(desk).leader == 2
    assert results(_election("t", 0)) == [PREFERRED_LEADER_NOT_AVAILABLE.code]
    desk.heartbeat(1)
    alter(desk, [(1, -1), (2, -1), (3, -1)], by=2)
    assert results(_election(None, 0)) == [0]
    assert the(desk).leader == 1


def test_preferred_leaders_are_restored_by_themselves() -> None:
    desk = three()
    desk.heartbeat(1, want_fence=True)
    desk.heartbeat(1)
    alter(desk, [(1, -1), (2, -1), (3, -1)], by=2)
    desk.do(desk.controller.decide_preferred_leaders())
    assert the(desk).leader == 1
    assert desk.controller.decide_preferred_leaders().records == []


def test_unclean_leaders_are_elected_only_where_that_is_allowed() -> None:
    desk = Desk()
    desk.join(1, 2)
    desk.ask(creation(assigned("t", {0: [1, 2]})))
    alter(desk, [(1, -1)])
    desk.heartbeat(1, want_fence=True)
    assert (the(desk).leader, the(desk).elr) == (-1, (1,))
    assert desk.controller.decide_unclean_leaders().records == []
    desk = Desk(unclean_leader_election_enable="true")
    desk.join(1, 2)
    desk.ask(creation(assigned("t", {0: [1, 2]})))
    alter(desk, [(1, -1)])
    desk.heartbeat(1, want_fence=True)
    assert (the(desk).leader, the(desk).isr, the(desk).leader_recovery_state) == (2, (2,), RECOVERING)


def test_replicas_are_reported_to_directories() -> None:
    desk = three()
    request = AssignReplicasToDirsRequest

    def ask(broker: int, topic: bytes, partition: int) -> int:
        wanted = [request.TopicData(topic_id=topic, partitions=[request.PartitionData(partition_index=partition)])]
        asked = request(
            broker_id=broker,
            broker_epoch=desk.image.brokers[broker].epoch,
            directories=[request.DirectoryData(id=uuid_of(5002), topics=wanted)],
        )
        code: int = desk.ask(asked).directories[0].topics[0].partitions[0].error_code
        return code

    desk.join(4)
    topic_id = desk.image.ids["t"]
    assert ask(2, topic_id, 0) == 0
    assert the(desk).directories[1] == uuid_of(5002)
    assert ask(2, uuid_of(3), 0) == UNKNOWN_TOPIC_ID.code
    assert ask(2, topic_id, 7) == UNKNOWN_TOPIC_OR_PARTITION.code
    assert ask(4, topic_id, 0) == NOT_LEADER_OR_FOLLOWER.code


def check_invariants(image: ClusterImage, epochs: dict[tuple[bytes, int], tuple[int, int, int]]) -> None:
    """I1: epochs rise and an epoch has one leader. I2: leader in ISR within replicas, ELR apart. I8: none is fenced."""
    for topic in image.topics.values():
        for index, each in enumerate(topic.partitions):
            assert set(each.isr) <= set(each.replicas)
            assert not set(each.isr) & set(each.elr)
            assert len(set(each.isr)) == len(each.isr)
            assert each.leader == -1 or each.leader in each.isr
            assert all(image.brokers[member].active for member in each.isr)
            if each.leader == -1:
                assert each.isr == ()
            known = epochs.get((topic.id, index))
            if known is not None:
                partition_epoch, leader_epoch, leader = known
                assert each.partition_epoch >= partition_epoch
                assert each.leader_epoch >= leader_epoch
                assert each.leader_epoch > leader_epoch or each.leader == leader
            epochs[topic.id, index] = (each.partition_epoch, each.leader_epoch, each.leader)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_no_walk_breaks_the_invariants(data: st.DataObject) -> None:
    desk = Desk(min_insync_replicas="2")
    epochs: dict[tuple[bytes, int], tuple[int, int, int]] = {}
    desk.join(1, 2, 3)
    desk.create("t", 3, 3)
    lives = dict.fromkeys(range(1, 5), 0)
    actions = ["fence", "beat", "stop", "crash", "restart", "alter", "elect", "silence", "forget", "preferred"]
    for _ in range(data.draw(st.integers(5, 30), label="steps")):
        action = data.draw(st.sampled_from(actions), label="action")
        broker = data.draw(st.integers(1, 4), label="broker")
        if action in ("crash", "restart") or (action == "beat" and broker not in desk.image.brokers):
            lives[broker] += 1
            desk.now += 9_000
            known = desk.image.brokers.get(broker)
            previous = known.epoch if known is not None and action == "restart" else -1
            desk.register(broker, life=lives[broker], previous=previous)
        elif action == "silence":
            desk.now += 4_000
            while (decision := desk.controller.decide_tick(desk.now)).records:
                desk.do(decision)
        elif action == "elect":
            desk.ask(_election(None, data.draw(st.sampled_from([0, 1]))))
        elif action == "preferred":
            desk.do(desk.controller.decide_preferred_leaders())
        elif action == "forget" and broker == 4:
            desk.ask(UnregisterBrokerRequest(broker_id=4))
        elif action == "alter" and the(desk).has_leader:
            others = data.draw(st.sets(st.integers(1, 3)), label="isr") | {the(desk).leader}
            alter(desk, [(each, -1) for each in sorted(others)], by=the(desk).leader)
        elif broker in desk.image.brokers and action in ("fence", "beat", "stop"):
            desk.heartbeat(broker, want_fence=action == "fence", want_shut_down=action == "stop")
        check_invariants(desk.image, epochs)
    snapshot = [record for record, _ in snapshot_records(desk.image)]
    assert image_of(snapshot, desk.image.offset, desk.image.epoch) == desk.image


@pytest.mark.parametrize("elr", [True, False])
@given(st.data())
def test_a_planned_change_always_leads_to_a_legal_partition(elr: bool, data: st.DataObject) -> None:
    members = st.lists(st.integers(1, 4), unique=True)
    replicas = tuple(data.draw(st.permutations([1, 2, 3, 4])))
    isr = tuple(data.draw(members.filter(bool)))
    left = [each for each in replicas if each not in isr]
    old = PartitionImage(
        replicas=replicas,
        directories=tuple(uuid_of(each) for each in replicas),
        isr=isr,
        elr=tuple(sorted(data.draw(st.sets(st.sampled_from(left))))) if left and elr else (),
        leader=data.draw(st.sampled_from(isr)),
    )
    alive = set(data.draw(members))
    now = after(
        old,
        alive,
        elr=elr,
        isr=tuple(each for each in isr if each in alive),
        election=data.draw(st.sampled_from(list(Election))),
    )
    assert now.leader == -1 or (now.leader in now.isr and now.leader in alive)
    assert not set(now.isr) & set(now.elr)
    assert set(now.isr) | set(now.elr), "somebody is known to have the data"
    assert now.leader_epoch > old.leader_epoch or now.leader == old.leader
