"""Replicas move between brokers and between directories, and leaders are elected."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.plan import several_nodes
from penstock.testing.sim.topics import AGAIN, BRIEF, COPIES, KEYED, LEDGER, ORDERS

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator

MOVED = (ORDERS, ORDERS, BRIEF, KEYED, AGAIN)
MOVED_TOO = (BRIEF, KEYED, AGAIN, LEDGER, LEDGER, COPIES, TRANSACTIONS_TOPIC, OFFSETS_TOPIC)
"""Where there are transactions: what they write, and where their coordinators live."""


def _movable(admin: Administrator) -> tuple[str, ...]:
    return MOVED if admin.plan.transactions is None else MOVED_TOO


async def moved(admin: Administrator, topic: str, number: int, replicas: list[int] | None) -> bool:
    """Asks for a partition's replicas; None cancels what was asked before."""
    ask = AlterPartitionReassignmentsRequest
    partition = ask.ReassignablePartition(partition_index=number, replicas=replicas)
    request = ask(topics=[ask.ReassignableTopic(name=topic, partitions=[partition])], timeout_ms=admin.timeout_ms)
    words = f"move {topic}-{number} to {replicas}" if replicas else f"cancel moving {topic}-{number}"
    return await admin.ask(words, request, lambda reply: reply.error_code or _first(reply.responses)) == "NONE"


async def reassign(admin: Administrator, random: Random) -> bool:
    topic = random.choice(_movable(admin))
    number = random.randrange(admin.partitions if topic == ORDERS else admin.plan.partitions)
    brokers = random.sample(admin.brokers, min(admin.plan.replication, len(admin.brokers)))
    return await moved(admin, topic, number, None if random.random() < 0.1 else brokers)


async def change_directory(admin: Administrator, random: Random) -> bool:
    """Moves some replica into one of the directories of its broker; it may be there already."""
    topic, broker = random.choice(_movable(admin)), random.choice(admin.brokers)
    number = random.randrange(admin.plan.partitions)
    ask = AlterReplicaLogDirsRequest
    path = random.choice(admin.plan.log_dirs(broker))
    topics = [ask.AlterReplicaLogDirTopic(name=topic, partitions=[number])]
    request = ask(dirs=[ask.AlterReplicaLogDir(path=path, topics=topics)])
    words = f"move {topic}-{number} on {broker} to {path}"
    return await admin.ask(words, request, lambda reply: _first(reply.results), broker) == "NONE"


async def elect(admin: Administrator, _random: Random) -> bool:
    request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=admin.timeout_ms)
    return await admin.ask("elect preferred leaders", request, lambda reply: reply.error_code) == "NONE"


def _first(topics: Any) -> int:
    return next((partition.error_code for topic in topics for partition in topic.partitions), 0)


CHORES = (
    Chore("replicas reassigned", reassign, possible=several_nodes),
    Chore("directories asked for", change_directory, possible=lambda plan: plan.directories > 1),
    Chore("leaders elected", elect, possible=several_nodes),
)
