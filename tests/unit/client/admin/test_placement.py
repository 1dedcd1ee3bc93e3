"""The Admin about moves, elections and membership: what it asks, and what it makes of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from penstock.client.admin.membership import add_voter, remove_voter, unregister_broker
from penstock.client.admin.placement import (
    Reassignment,
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from penstock.client.admin.session import Session
from penstock.client.errors import BadSetting, BrokerRefused, UnknownTopic
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_VOTER,
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    NO_REASSIGNMENT_IN_PROGRESS,
    NOT_CONTROLLER,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.model.ids import TopicPartition, uuid_parse
from penstock.protocol.messages.add_raft_voter import AddRaftVoterResponse
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from penstock.protocol.messages.elect_leaders import ElectLeadersResponse
from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from penstock.protocol.messages.unregister_broker import UnregisterBrokerResponse

T = TypeVar("T")
DIRECTORY = "5DJpTcA6QUCsPiT9dZHUQw"
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Scripted:
    """A cluster that gives the next answer to whatever it is asked, and remembers the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[Any]()

    async def ask_any(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answers.pop(0)


def run(view: Scripted, work: Callable[[Session], Awaitable[T]]) -> T:
    async def main() -> T:
        return await work(Session(view, backoff_ms=1))  # type: ignore[arg-type]  # the part of a view that is used

    return asyncio.run(main())


def moved(*outcomes: tuple[TopicPartition, int]) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse
    return response(
        responses=[
            response.ReassignableTopicResponse(
                name=item.topic,
                partitions=[
                    response.ReassignablePartitionResponse(partition_index=item.partition, error_code=code)
                ],
            )
            for item, code in outcomes
        ]
    )  # fmt: skip


def test_moves_are_asked_for_by_topic_and_answered_by_partition() -> None:
    view = Scripted(moved((A0, 0), (A1, NO_REASSIGNMENT_IN_PROGRESS.code), (B0, UNKNOWN_TOPIC_OR_PARTITION.code)))
    results = run(
        view,
        lambda session: alter_partition_reassignments(
            session, {A0: [2, 3], A1: None, B0: (1,)}, allow_replication_change=False
        ),
    )
    (request,) = view.asked
    assert not request.allow_replication_factor_change
    assert [(topic.name, [(p.partition_index, p.replicas) for p in topic.partitions]) for topic in request.topics] == [
        ("a", [(0, [2, 3]), (1, None)]),
        ("b", [(0, [1])]),
    ]
    assert results.done == {A0: None}
    assert results.failed[A1].error is NO_REASSIGNMENT_IN_PROGRESS
    assert isinstance(results.failed[B0], UnknownTopic)


def test_a_change_of_the_controller_is_waited_out() -> None:
    view = Scripted(AlterPartitionReassignmentsResponse(error_code=NOT_CONTROLLER.code), moved((A0, 0)))
    results = run(
        view, lambda session: alter_partition_reassignments(session, {A0: [1]}, allow_replication_change=True)
    )
    assert (results.done, results.failed, len(view.asked)) == ({A0: None}, {}, 2)


def test_moves_under_way_have_a_target() -> None:
    response = ListPartitionReassignmentsResponse
    found = response.OngoingPartitionReassignment(
        partition_index=0, replicas=[4, 1, 2], adding_replicas=[4], removing_replicas=[1]
    )
    view = Scripted(response(topics=[response.OngoingTopicReassignment(name="a", partitions=[found])]))
    moves = run(view, lambda session: list_partition_reassignments(session, None))
    assert view.asked[0].topics is None
    assert moves == {A0: Reassignment([4, 1, 2], [4], [1])}
    assert moves[A0].target == [4, 2]


def elected(*outcomes: tuple[TopicPartition, int]) -> ElectLeadersResponse:
    response = ElectLeadersResponse
    return response(
        replica_election_results=[
            response.ReplicaElectionResult(
                topic=item.topic,
                partition_result=[response.PartitionResult(partition_id=item.partition, error_code=code)],
            )
            for item, code in outcomes
        ]
    )


ANSWERS = ((A0, 0), (A1, ELECTION_NOT_NEEDED.code), (B0, ELIGIBLE_LEADERS_NOT_AVAILABLE.code))


@pytest.mark.parametrize("named", [True, False])
def test_an_election_that_was_not_needed_is_no_failure(named: bool) -> None:
    view = Scripted(elected(*ANSWERS))
    chosen = [A0, A1, B0] if named else None
    results = run(view, lambda session: elect_leaders(session, chosen, unclean=True))
    assert view.asked[0].election_type == 1
    assert (view.asked[0].topic_partitions is None) is not named
    assert results.done == {A0: True, A1: False}
    assert results.failed[B0].error is ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_a_voter_is_added_with_where_it_listens() -> None:
    view = Scripted(AddRaftVoterResponse(), AddRaftVoterResponse(error_code=DUPLICATE_VOTER.code))
    run(view, lambda session: add_voter(session, 4, DIRECTORY, ["CONTROLLER://[::1]:9093"]))
    (request,) = view.asked
    assert (request.cluster_id, request.voter_id, request.voter_directory_id) == (None, 4, uuid_parse(DIRECTORY))
    assert [(at.name, at.host, at.port) for at in request.listeners] == [("CONTROLLER", "::1", 9093)]
    with pytest.raises(BrokerRefused, match="DUPLICATE_VOTER"):
        run(view, lambda session: add_voter(session, 4, DIRECTORY, ["CONTROLLER://h:9093"]))


@pytest.mark.parametrize("endpoint", ["h:9093", "CONTROLLER://h", "CONTROLLER://h:0", "CONTROLLER://h:70000", "://h:1"])
def test_what_is_no_endpoint_is_not_sent(endpoint: str) -> None:
    with pytest.raises(BadSetting, match="CONTROLLER://host:9093"):
        run(Scripted(), lambda session: add_voter(session, 4, DIRECTORY, [endpoint]))
    with pytest.raises(BadSetting, match="needs an endpoint"):
        run(Scripted(), lambda session: add_voter(session, 4, DIRECTORY, []))


def test_voters_and_brokers_go() -> None:
    view = Scripted(
        RemoveRaftVoterResponse(),
        UnregisterBrokerResponse(),
        UnregisterBrokerResponse(error_code=BROKER_ID_NOT_REGISTERED.code, error_message="broker 9 is not registered"),
    )
    run(view, lambda session: remove_voter(session, 4, DIRECTORY))
    run(view, lambda session: unregister_broker(session, 4))
    assert [view.asked[0].voter_id, view.asked[1].broker_id] == [4, 4]
    with pytest.raises(BrokerRefused, match="broker 9 is not registered"):
        run(view, lambda session: unregister_broker(session, 9))
    with pytest.raises(BadSetting, match="directory id"):
        run(view, lambda session: remove_voter(session, 4, "short"))
