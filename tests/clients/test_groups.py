"""Foreign clients share groups: every record reaches one member of each group, once, whoever comes and goes."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.clients.interface import TIMEOUT_S
from tests.clients.members import MEMBERS, RANGE_MEMBERS, Member
from tests.patience import wait_for, within

NewTopic = Callable[..., str]
PARTITIONS = 6

_numbers = itertools.count(1)


@pytest.fixture(params=MEMBERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def until(what: str, condition: Callable[[], bool]) -> None:
    wait_for(what, condition, timeout_s=TIMEOUT_S)


class Group:
    """The members of one group and all they were given."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.id = f"{topic}-group-{next(_numbers)}"
        self.given: Counter[bytes] = Counter()
        self.by_member: Counter[str] = Counter()
        self.takers: dict[bytes, list[str]] = {}
        self.members: list[Member] = []
        self._lock = threading.Lock()

    def _take(self, name: str, value: bytes) -> None:
        with self._lock:
            self.given[value] += 1
            self.by_member[name] += 1
            self.takers.setdefault(value, []).append(name)

    def join(self, kind: str) -> Member:
        name = f"{kind}-{len(self.by_member)}-{next(_numbers)}"
        member = MEMBERS[kind](self.bootstrap, self.id, [self.topic], name, self._take)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        member.leave()

    def settled(self, partitions: int = PARTITIONS) -> bool:
        """Whether every partition has one owner and every member has some."""
        owned = [member.owned for member in self.members]
        return all(owned) and sum(map(len, owned)) == partitions == len(frozenset().union(*owned))

    def twice(self) -> dict[bytes, list[str]]:
        """What was given more than once, and to whom.

        librdkafka pauses and resumes what it keeps in a rebalance, and goes on from the last record whose delivery it
        has noted: the one that it delivers at that moment comes again, to the same member, with any broker.
        """
        return {
            value: names
            for value, names in self.takers.items()
            if len(names) > 1 and not (len(set(names)) == 1 and names[0].startswith("confluent-kafka"))
        }

    def committed_everywhere(self) -> bool:
        """Whether the group has a place to go on from in every partition.

        Until then new owners ask for the beginning, and librdkafka may ask twice when it is rebalanced meanwhile: the
        answer that it finds outdated sets a timer, which takes it back to the beginning while it reads, with any
        broker.
        """
        asking = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.id})
        try:
            places = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
            return all(place.offset >= 0 for place in asking.committed(places, timeout=within(TIMEOUT_S)))
        finally:
            asking.close()


@contextmanager
def group_of(bootstrap: str, topic: str) -> Iterator[Group]:
    group = Group(bootstrap, topic)
    try:
        yield group
    finally:
        for member in list(group.members):
            member.stop()
        for member in list(group.members):
            group.leave(member)


class Load:
    """Produces numbered values to all partitions until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
        self._topic = topic
        self._stop = threading.Event()
        self.sent: list[bytes] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.wait(0.001):
                return
            value = b"%d" % number
            self._producer.produce(self._topic, value, partition=number % PARTITIONS)
            self._producer.poll(0)
            self.sent.append(value)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(within(TIMEOUT_S))
        assert self._producer.flush(within(TIMEOUT_S)) == 0


@contextmanager
def loaded(bootstrap: str, topic: str) -> Iterator[Load]:
    load = Load(bootstrap, topic)
    try:
        yield load
    finally:
        load.stop()


def produced(bootstrap: str, topic: str, count: int, start: int = 0) -> list[bytes]:
    producer = Producer({"bootstrap.servers": bootstrap})
    values = [b"%d" % number for number in range(start, start + count)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(within(TIMEOUT_S)) == 0
    return values


def come_and_go(bootstrap: str, topic: str, kinds: Sequence[str]) -> None:
    """Members join and leave while records come; the claim of this page is checked at the end."""
    with loaded(bootstrap, topic) as load, group_of(bootstrap, topic) as group:
        first = group.join(kinds[0])
        until("the first member to own everything", group.settled)
        until("it to have committed", group.committed_everywhere)
        for kind in kinds[1:]:
            group.join(kind)
        until("all members to own a part", group.settled)
        busy = group.by_member.copy()
        until(
            "everybody to be given something",
            lambda: all(group.by_member[member.name] > busy[member.name] for member in group.members),
        )
        group.leave(first)
        until("the others to take over", group.settled)
        load.stop()
        until("the last record", lambda: len(group.given) == len(load.sent))
        assert not group.given.keys() - set(load.sent)
        assert not group.twice(), "each record once"


def test_a_group_goes_on_where_it_left_off(bootstrap: str, new_topic: NewTopic, kind: str) -> None:
    topic = new_topic(partitions=PARTITIONS)
    values = produced(bootstrap, topic, 300)
    with group_of(bootstrap, topic) as group:
        member = group.join(kind)
        until("all records", lambda: len(group.given) == 300)
        group.leave(member)
        values += produced(bootstrap, topic, 60, start=300)
        group.join(kind)
        until("the new records", lambda: len(group.given) == 360)
    assert group.given == Counter(values)


def test_two_groups_are_each_given_everything(bootstrap: str, new_topic: NewTopic, kind: str) -> None:
    topic = new_topic(partitions=PARTITIONS)
    values = produced(bootstrap, topic, 120)
    with group_of(bootstrap, topic) as one, group_of(bootstrap, topic) as other:
        one.join(kind)
        other.join(kind)
        until("both groups", lambda: len(one.given) == len(other.given) == 120)
    assert one.given == other.given == Counter(values)


def test_members_come_and_go_under_load(bootstrap: str, new_topic: NewTopic, kind: str) -> None:
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), [kind] * 3)


def test_different_libraries_share_a_group(bootstrap: str, new_topic: NewTopic) -> None:
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), RANGE_MEMBERS)


def test_old_and_new_protocol_meet_in_one_group(bootstrap: str, new_topic: NewTopic) -> None:
    """The group is taken over by the new protocol while members of the old one are in it."""
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), ["confluent-kafka", "confluent-kafka consumer protocol"])
