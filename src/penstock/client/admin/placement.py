"""Where partitions lie and who leads them: moving replicas between brokers, cancelling that, electing leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.client.admin.session import Results, Session, check, gathered, partition_words, refused
from penstock.client.errors import ClientError
from penstock.model.errors import ELECTION_NOT_NEEDED
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

PREFERRED, UNCLEAN = 0, 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move that is under way: all replicas for now, those that are to come and those that will go."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def target(self) -> list[int]:
        """The replicas when it is done, preferred leader first."""
        return [node for node in self.replicas if node not in self.removing]


async def alter_partition_reassignments(
    session: Session, to: Mapping[TopicPartition, Sequence[int] | None], *, allow_replication_change: bool
) -> Results[TopicPartition, None]:
    """Begins to move partitions to other replicas; None cancels a move. The moves go on after the answer."""

    async def ask(pending: list[TopicPartition]) -> Mapping[TopicPartition, ClientError | None]:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=session.request_timeout_ms,
            allow_replication_factor_change=allow_replication_change,
            topics=[
                AlterPartitionReassignmentsRequest.ReassignableTopic(
                    name=topic,
                    partitions=[
                        AlterPartitionReassignmentsRequest.ReassignablePartition(
                            partition_index=index, replicas=_replicas(to[TopicPartition(topic, index)])
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in _by_topic(pending).items()
            ],
        )
        reply = await session.any(request)
        check(reply.error_code, reply.error_message, "the move")
        outcomes: dict[TopicPartition, ClientError | None] = {}
        for topic in reply.responses:
            for found in topic.partitions:
                item = TopicPartition(topic.name, found.partition_index)
                outcomes[item] = _outcome(item, found.error_code, found.error_message)
        return outcomes

    return await session.settled(to, lambda pending: gathered(partial(ask, pending), pending))


async def list_partition_reassignments(
    session: Session, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Reassignment]:
    """The moves that are under way, of all partitions for None."""
    wanted = None
    if partitions is not None:
        wanted = [
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in _by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(timeout_ms=session.request_timeout_ms, topics=wanted)

    async def call() -> dict[TopicPartition, Reassignment]:
        reply = await session.any(request)
        check(reply.error_code, reply.error_message, "the list of moves")
        found = {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                each.replicas, each.adding_replicas, each.removing_replicas
            )
            for topic in reply.topics
            for each in topic.partitions
        }
        return dict(sorted(found.items()))

    return await session.patient(call)


async def elect_leaders(
    session: Session, partitions: Iterable[TopicPartition] | None, *, unclean: bool
) -> Results[TopicPartition, bool]:
    """Elects the preferred leaders, or with `unclean` any live replica where there is no leader.

    True for a partition that was given a leader, False for one that needed none. For None, all partitions are looked
    at, and those that needed none may be left out.
    """
    if partitions is None:
        return await _elect_everywhere(session, unclean=unclean)

    async def ask(pending: list[TopicPartition]) -> Mapping[TopicPartition, bool | ClientError]:
        wanted = [
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in _by_topic(pending).items()
        ]
        return _elected(await _ask_for_leaders(session, wanted, unclean=unclean))

    return await session.settled(partitions, lambda pending: gathered(partial(ask, pending), pending))


async def _elect_everywhere(session: Session, *, unclean: bool) -> Results[TopicPartition, bool]:
    results: Results[TopicPartition, bool] = Results()
    reply = await session.patient(lambda: _ask_for_leaders(session, None, unclean=unclean))
    for item, outcome in _elected(reply).items():
        if isinstance(outcome, ClientError):
            results.failed[item] = outcome
        else:
            results.done[item] = outcome
    return results


async def _ask_for_leaders(
    session: Session, wanted: list[ElectLeadersRequest.TopicPartitions] | None, *, unclean: bool
) -> ElectLeadersResponse:
    reply: ElectLeadersResponse = await session.any(
        ElectLeadersRequest(
            election_type=UNCLEAN if unclean else PREFERRED,
            topic_partitions=wanted,
            timeout_ms=session.request_timeout_ms,
        )
    )
    check(reply.error_code, None, "the election")
    return reply


def _elected(reply: ElectLeadersResponse) -> dict[TopicPartition, bool | ClientError]:
    outcomes: dict[TopicPartition, bool | ClientError] = {}
    for topic in reply.replica_election_results:
        for found in topic.partition_result:
            item = TopicPartition(topic.topic, found.partition_id)
            needed = found.error_code != ELECTION_NOT_NEEDED.code
            failure = _outcome(item, found.error_code, found.error_message) if needed else None
            outcomes[item] = failure or needed
    return outcomes


def _outcome(item: TopicPartition, code: int, words: str | None) -> ClientError | None:
    return refused(code, words, partition_words(item)) if code else None


def _replicas(nodes: Sequence[int] | None) -> list[int] | None:
    return None if nodes is None else list(nodes)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for item in partitions:
        grouped.setdefault(item.topic, []).append(item.partition)
    return grouped
