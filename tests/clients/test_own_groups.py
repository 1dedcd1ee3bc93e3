"""Our own client in groups: alone, with foreign members, and across the two protocols."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.clients.members import MEMBERS, RANGE_MEMBERS
from tests.clients.own_members import OWN_MEMBERS
from tests.clients.test_groups import PARTITIONS, NewTopic, come_and_go, group_of, produced, until

MEMBERS.update(OWN_MEMBERS)


@pytest.mark.parametrize("kind", OWN_MEMBERS)
def test_penstock_members_come_and_go_under_load(bootstrap: str, new_topic: NewTopic, kind: str) -> None:
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), [kind] * 3)


@pytest.mark.parametrize("kind", OWN_MEMBERS)
def test_a_penstock_group_goes_on_where_it_left_off(bootstrap: str, new_topic: NewTopic, kind: str) -> None:
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


def test_penstock_shares_a_group_with_every_other_library(bootstrap: str, new_topic: NewTopic) -> None:
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), [*RANGE_MEMBERS, "penstock"])


def test_penstock_is_cooperative_beside_librdkafka(bootstrap: str, new_topic: NewTopic) -> None:
    kinds = ["confluent-kafka cooperative", "penstock cooperative", "penstock cooperative"]
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), kinds)


def test_a_penstock_group_changes_its_protocol_under_load(bootstrap: str, new_topic: NewTopic) -> None:
    come_and_go(bootstrap, new_topic(partitions=PARTITIONS), ["penstock", "penstock consumer protocol"])
