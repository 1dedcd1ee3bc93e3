"""Decisions and filters of ACLs, judged by Apache Kafka's StandardAuthorizer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Offset, Uuid
from penstock.model.security import Operation, Principal, ResourceType
from penstock.security.acls import acl_entry, acl_filter, described, record_of
from penstock.security.authorizer import Authorizer
from tests.compat.oracles.jvm import answers

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

WORLDS = 2_000
ASKS = 50
FILTERS = 10

# No name begins with a star and goes on: Kafka 4.3.1 overlooks ACLs of `*` for such groups, a DENY of all among them.
NAMES = ["a", "ab", "abc", "abd", "b", "ba", "*", "hardcode", "hard", "hardcodex", "é", "a😀"]
ASKED_NAMES = [*NAMES, "abcd", "zz", "a😀b", "__consumer_offsets"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:*", "Group:alice", "User:a:b", "User:ANONYMOUS"]
ASKING = [("User", "alice"), ("User", "bob"), ("Group", "alice"), ("User", "a:b"), ("User", "root")]
HOSTS = ["*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1"]
ASKING_HOSTS = ["10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "127.0.0.1"]
TYPES = [2, 2, 2, 3, 4, 5, 6, 7]
OPERATIONS = range(2, 16)


def world(random: Random) -> dict[str, Any]:
    """Few names, and of all worlds some with few operations: ACLs have to meet, or nothing is tried but the default."""
    operations = random.sample(OPERATIONS, random.choice([1, 2, 4, 14]))
    types = random.sample(TYPES, random.choice([1, 2, 8]))
    acls = {
        (
            random.choice(types),
            random.choice(NAMES),
            random.choice([3, 3, 4]),
            random.choice(PRINCIPALS),
            random.choice(["*", *HOSTS]),
            random.choice(operations),
            random.choice([2, 3, 3, 3]),
        )
        for _ in range(random.choice([0, 1, 2, 4, 8, 16, 40]))
    }
    return {
        "super": random.choice(["", "User:root", "User:root;User:bob"]),
        "everyone": random.choice(["true", "false"]),
        "acls": sorted(acls),
        "asks": [
            [
                *random.choice(ASKING),
                random.choice(ASKING_HOSTS),
                random.choice([*operations, random.choice(OPERATIONS)]),
                random.choice(types),
                random.choice(ASKED_NAMES),
            ]
            for _ in range(ASKS)
        ],
        "filters": [
            [
                random.choice([1, *types]),
                random.choice([None, *ASKED_NAMES]),
                random.choice([1, 2, 3, 4]),
                random.choice([None, None, *PRINCIPALS]),
                random.choice([None, None, *HOSTS]),
                random.choice([1, 1, *operations]),
                random.choice([1, 1, 2, 3]),
            ]
            for _ in range(FILTERS)
        ],
    }


def ours(asked: dict[str, Any]) -> dict[str, Any]:
    image = ClusterImage()
    for number, acl in enumerate(asked["acls"], start=1000):
        image.apply(record_of(Uuid(number.to_bytes(16, "big")), acl_entry(*acl)), Offset(number), Epoch(1))
    authorizer = Authorizer(asked["super"].split(";"), allow_everyone=asked["everyone"] == "true")
    authorizer.load(image)
    allowed, any_of_type = [], []
    for kind, name, host, operation, type, resource in asked["asks"]:
        who, what = Principal(kind, name), (Operation(operation), ResourceType(type))
        allowed.append(authorizer.decide(who, host, *what, resource).allowed)
        any_of_type.append("ALLOWED" if authorizer.decide_any(who, host, *what).allowed else "DENIED")
    entries = authorizer.acls.entries.values()
    found = [
        sorted(list(entry) for group in described(entries, acl_filter(*each)).values() for entry in group)
        for each in asked["filters"]
    ]
    return {"allowed": allowed, "any": any_of_type, "found": found}


def test_standard_authorizer_decides_the_same() -> None:
    random = Random(20261117)
    worlds = [world(random) for _ in range(WORLDS)]
    for asked, kafka in zip(worlds, answers("Authorizing.java", worlds), strict=True):
        said = ours(asked)
        # Kafka does not answer by type about ANY, UNKNOWN and ALL; nobody asks that.
        said["any"] = [
            mine if told != "UNASKED" else told for mine, told in zip(said["any"], kafka["any"], strict=True)
        ]
        kafka["found"] = [sorted(each) for each in kafka["found"]]
        assert said == kafka, asked
