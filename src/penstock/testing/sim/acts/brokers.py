"""Brokers are added to a cluster, and taken out again when everything has been moved off them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from penstock.testing.sim.acts.places import moved
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.plan import several_nodes

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator

NODES_ADDED_MAX = 2
ROUNDS_MAX = 10


async def add_broker(admin: Administrator, _random: Random) -> bool:
    """A machine that was not there before joins as a broker, and whatever is moved from now on may go to it."""
    if admin.nodes_added >= NODES_ADDED_MAX:
        return False
    admin.nodes_added += 1
    node_id = admin.add_machine()
    if not await admin.until(lambda: admin.serves(node_id)):
        return False
    admin.brokers.append(node_id)
    return True


async def remove_broker(admin: Administrator, random: Random) -> bool:
    """Moves everything off a broker that was added, stops it and has it forgotten."""
    added = [node_id for node_id in admin.brokers if node_id > admin.plan.nodes]
    if not added:
        return False
    node_id = random.choice(added)
    admin.brokers.remove(node_id)
    for _ in range(ROUNDS_MAX):
        left = admin.replicas_on(node_id)
        if left == []:
            break
        for topic, number, replicas in left or ():
            others = [each for each in admin.brokers if each not in replicas]
            kept = [each for each in replicas if each != node_id]
            await moved(admin, topic, number, kept + random.sample(others, min(1, len(others))))
        await admin.until(lambda: admin.replicas_on(node_id) == [])
    else:
        admin.brokers.append(node_id)  # it has to stay for now
        return False
    await admin.retire(node_id)
    request = UnregisterBrokerRequest(broker_id=node_id)
    words = f"forget broker {node_id}"
    while await admin.ask(words, request, lambda reply: reply.error_code) not in ("NONE", "BROKER_ID_NOT_REGISTERED"):
        await admin.rest()
    return True


CHORES = (
    Chore("brokers added", add_broker, 0.4, several_nodes),
    Chore("brokers taken out", remove_broker, 0.8, several_nodes),
)
