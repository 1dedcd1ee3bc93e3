"""What was sold: reads the orders from the start, as often as one likes, without being in a group."""

from __future__ import annotations

from collections import Counter

from coffee_shop.orders import ORDERS, Unreadable, from_bytes
from penstock import TopicPartition
from penstock.blocking import Admin, Consumer


def takings(bootstrap_servers: str) -> Counter[str]:
    """Cents by customer, of every order that is in the topic now."""
    total: Counter[str] = Counter()
    for value in all_values(bootstrap_servers, ORDERS):
        try:
            order = from_bytes(value)
        except Unreadable:
            continue
        total[order.customer] += order.price_cents
    return total


def all_values(bootstrap_servers: str, topic: str) -> list[bytes]:
    """Every value that a topic holds now, partition by partition."""
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        if topic not in {found.name for found in admin.topics()}:
            return []
    values = []
    with Consumer(bootstrap_servers=bootstrap_servers, offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, index) for index in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        left = {each for each, end in consumer.end_offsets(*partitions).items() if end > consumer.position(each)}
        ends = consumer.end_offsets(*partitions)
        while left:
            values += [record.value or b"" for record in consumer.poll(timeout_ms=1_000)]
            left = {each for each in left if consumer.position(each) < ends[each]}
    return values
