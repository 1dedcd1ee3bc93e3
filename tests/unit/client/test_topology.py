"""What metadata replies and hints add up to."""

from __future__ import annotations

from penstock.client.topology import Topology
from penstock.model.errors import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from penstock.model.ids import Uuid
from penstock.protocol.messages.metadata import MetadataResponse

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def reply(
    *leaders: tuple[int, int], topic_id: Uuid = A, error: int = 0, nodes: tuple[int, ...] = (1, 2)
) -> MetadataResponse:
    partitions = [
        MetadataResponse.MetadataResponsePartition(
            partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2], isr_nodes=[1]
        )
        for index, (leader, epoch) in enumerate(leaders)
    ]
    topic = MetadataResponse.MetadataResponseTopic(error_code=error, name="t", topic_id=topic_id, partitions=partitions)
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=node, host=f"h{node}", port=9, rack=f"r{node}")
        for node in nodes
    ]
    return MetadataResponse(brokers=brokers, topics=[topic])


def test_a_reply_tells_leaders_racks_and_ids() -> None:
    topology = Topology()
    topology.absorb(reply((1, 5), (2, 6)))
    assert [topology.leader_of("t", index) for index in (0, 1, 2)] == [1, 2, None]
    assert topology.topics["t"].partitions[0].racks == ("r1", "r2")
    assert topology.names == {A: "t"}


def test_a_broker_that_lags_behind_does_not_bring_a_former_leader_back() -> None:
    topology = Topology()
    topology.absorb(reply((2, 6)))
    topology.absorb(reply((1, 5)))
    assert topology.leader_of("t", 0) == 2


def test_a_topic_made_anew_starts_from_its_own_epochs() -> None:
    topology = Topology()
    topology.absorb(reply((2, 6)))
    topology.absorb(reply((1, 0), topic_id=B))
    assert topology.leader_of("t", 0) == 1
    assert topology.names == {B: "t"}


def test_a_hint_counts_when_its_epoch_is_newer() -> None:
    topology = Topology()
    topology.absorb(reply((1, 5)))
    assert not topology.learn("t", 0, 2, 5, None)
    assert topology.learn("t", 0, 2, 6, None)
    assert topology.leader_of("t", 0) == 2


def test_a_hint_at_an_unknown_broker_needs_its_address() -> None:
    topology = Topology()
    topology.absorb(reply((1, 5)))
    assert not topology.learn("t", 0, 9, 6, None)
    assert topology.learn("t", 0, 9, 6, ("h9", 9))
    assert topology.addresses[9] == ("h9", 9)


def test_an_error_that_passes_keeps_what_is_known() -> None:
    topology = Topology()
    topology.absorb(reply((1, 5)))
    topology.absorb(reply(error=29))
    assert topology.leader_of("t", 0) == 1


def test_a_reply_of_all_topics_drops_those_that_are_not_in_it() -> None:
    topology = Topology()
    topology.absorb(reply((1, 5)))
    topology.mark_stale("t")
    assert topology.absorb(MetadataResponse(brokers=[], topics=[]), of_all=True) == ["t"]
    assert (topology.topics, topology.names, topology.stale) == ({}, {}, set())


def test_nothing_is_kept_of_a_topic_that_is_gone() -> None:
    topology = Topology()
    topology.absorb(reply((1, 5)))
    topology.mark_stale("t")
    assert topology.absorb(reply(error=UNKNOWN_TOPIC_OR_PARTITION.code)) == ["t"]
    assert (topology.topics, topology.names, topology.stale, topology.refusals) == ({}, {}, set(), {})


def test_a_refusal_is_kept_until_the_topic_is_gone() -> None:
    topology = Topology()
    topology.absorb(reply(error=TOPIC_AUTHORIZATION_FAILED.code))
    assert topology.refusals == {"t": TOPIC_AUTHORIZATION_FAILED.code}
    topology.absorb(reply(error=UNKNOWN_TOPIC_OR_PARTITION.code))
    assert topology.refusals == {}


def test_a_topic_that_was_gone_before_is_told_too() -> None:
    """Whoever followed it in the meantime has to let go of it."""
    topology = Topology()
    assert topology.absorb(reply(error=UNKNOWN_TOPIC_OR_PARTITION.code)) == ["t"]
