"""Rates, token buckets, whose limit holds and filters over quotas, judged by Apache Kafka's own classes.

`PENSTOCK_SEED` draws others, `PENSTOCK_CASES` another number of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from penstock.metadata.image import ClusterImage, quota_entity
from penstock.model.errors import Refused
from penstock.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from penstock.security.quotas.clients import ClientQuotas, Meter
from penstock.security.quotas.describing import QuotaFilter
from penstock.security.quotas.entities import CLIENT_ID, IP, PRODUCER_BYTE_RATE, USER
from penstock.security.quotas.rate import RateBucket
from penstock.security.quotas.tokens import TokenBucket
from tests.compat.oracles.jvm import answers

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

CASES = int(os.environ.get("PENSTOCK_CASES", "100000"))
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))
EVENTS = 100
"""Of each bucket."""
WORLDS = CASES // EVENTS
START_MS = 1_700_000_000_000

STEPS_MS = [0, 0, 1, 7, 90, 450, 999, 1_000, 1_001, 2_500, 9_999, 10_000, 10_999, 11_000, 11_001, 30_000]


def times(random: Random, count: int) -> Iterator[int]:
    """Mostly close together, with every way to miss or meet the end of a window."""
    now_ms = START_MS + random.randrange(1_000)
    steps = random.choice([STEPS_MS, STEPS_MS[:6], [100, 200, 300], [1_000], STEPS_MS[4:12]])
    for _ in range(count):
        yield now_ms
        now_ms += random.choice(steps)


def test_rates_and_pauses_are_kafkas() -> None:
    random = Random(SEED)
    cases = []
    for _ in range(WORLDS):
        limit = random.choice([1, 10, 1_000, 12_345.5, 50_000_000, 0.75])
        events: list[list[float | None]] = []
        for now_ms in times(random, EVENTS):
            value = round(random.choice([0.01, 0.3, 1.0, 1.0, 12.0]) * limit * random.random() * 3, 3)
            events.append([now_ms, random.choice([value, value, value, value, -value / 2, None])])
        cases.append({"kind": "rate", "limit": limit, "events": events})
    for case, kafka in zip(cases, answers("Charging.java", cases), strict=True):
        bucket = RateBucket(case["limit"], case["events"][0][0])
        for at, (now_ms, value) in enumerate(case["events"]):
            pause_ms = 0 if value is None else bucket.charge(value, now_ms)
            # A sum that is kept differs from one that is added up in the last bits, which a pause can round to.
            assert abs(pause_ms - kafka["pauses"][at]) <= 1 + abs(pause_ms) * 1e-9, (case, at)
            assert bucket.rate(now_ms) == pytest.approx(kafka["rates"][at], rel=1e-9, abs=1e-6), (case, at)


def test_whole_numbers_are_counted_without_a_difference() -> None:
    random = Random(SEED)
    cases = [
        {
            "kind": "rate",
            "limit": random.choice([1, 100, 1_000, 50_000_000]),
            "events": [[now_ms, random.randrange(100_000)] for now_ms in times(random, EVENTS)],
        }
        for _ in range(WORLDS)
    ]
    for case, kafka in zip(cases, answers("Charging.java", cases), strict=True):
        bucket = RateBucket(case["limit"], case["events"][0][0])
        assert [bucket.charge(value, now_ms) for now_ms, value in case["events"]] == kafka["pauses"], case


def test_tokens_and_pauses_are_kafkas() -> None:
    random = Random(SEED)
    cases = []
    for _ in range(WORLDS):
        limit = random.choice([0.5, 2, 10, 1_000.25])
        events = [
            [now_ms, round(random.random() * limit * random.choice([1, 5, 30]), 3), random.random() < 0.7]
            for now_ms in times(random, EVENTS)
        ]
        cases.append({"kind": "tokens", "limit": limit, "events": events})
    for case, kafka in zip(cases, answers("Charging.java", cases), strict=True):
        bucket = TokenBucket(case["limit"], case["events"][0][0])
        for at, (now_ms, count, strict) in enumerate(case["events"]):
            if strict:
                pause_ms = 0 if bucket.try_take(count, now_ms) else bucket.pause_ms(now_ms)
            else:
                pause_ms = bucket.charge(count, now_ms)
            assert (pause_ms, bucket.tokens(now_ms)) == (kafka["pauses"][at], kafka["tokens"][at]), (case, at)


USERS = ["alice", "bob", "ANONYMOUS"]
CLIENTS = ["c1", "c2", ""]


def test_the_same_limit_holds_for_the_same_clients() -> None:
    random = Random(SEED)
    levels = [(user, client) for user in ["alice", "bob", None, ""] for client in ["c1", "c2", None, ""]][:-1]
    cases = []
    for _ in range(WORLDS):
        limits = [
            [*level, random.choice([100, 1_000, 5_000])] for level in random.sample(levels, random.randrange(1, 8))
        ]
        events: list[list[Any]] = []
        for now_ms in times(random, EVENTS):
            events.append([random.choice(USERS), random.choice(CLIENTS), random.randrange(4_000), now_ms])
            if random.random() < 0.02:
                events.append([*random.choice(limits)[:2], random.choice([100, 1_000, 5_000])])
        cases.append({"kind": "clients", "limits": limits, "events": events})
    for case, kafka in zip(cases, answers("Charging.java", cases), strict=True):
        assert charged(case) == kafka, case


def charged(case: dict[str, Any]) -> dict[str, Any]:
    image, quotas = ClusterImage(), ClientQuotas()
    meters = {user: Meter(quotas, user) for user in USERS}
    for limit in case["limits"]:
        set_limit(image, limit)
    quotas.load(image)
    pauses, limits = [], []
    for event in case["events"]:
        if len(event) == 3:
            set_limit(image, event)
            quotas.load(image)
            continue
        user, client, value, now_ms = event
        pauses.append(meters[user].charge(PRODUCER_BYTE_RATE, client, value, now_ms))
        most = meters[user].most(PRODUCER_BYTE_RATE, client)
        limits.append(UNLIMITED if most is None else most)
    return {"pauses": pauses, "limits": limits}


UNLIMITED = 1.7976931348623157e308
"""What Kafka says of a client without a limit."""


def set_limit(image: ClusterImage, limit: list[Any]) -> None:
    user, client, value = limit
    parts = [(type, name) for type, name in ((USER, user), (CLIENT_ID, client)) if name != ""]
    image.quotas[quota_entity(parts)] = {PRODUCER_BYTE_RATE: value}


def test_filters_mean_the_same_entities() -> None:
    random = Random(SEED)
    names = [None, "a", "b"]
    every = [[[USER, name]] for name in names] + [[[CLIENT_ID, name]] for name in names]
    every += [[[CLIENT_ID, client], [USER, user]] for client in names for user in names]
    every += [[[IP, "10.0.0.1"]], [[IP, None]]]
    cases = [
        {
            "kind": "describe",
            "quotas": random.sample(every, random.randrange(len(every))),
            "components": [
                [
                    random.choice([USER, USER, CLIENT_ID, CLIENT_ID, IP, random.choice(["", "host"])]),
                    random.choice([0, 1, 2, random.choice([3, -1])]),
                    random.choice(["a", "b", None, None, "10.0.0.1"]),
                ]
                for _ in range(random.choice([0, 1, 1, 2, 2, 3]))
            ],
            "strict": random.random() < 0.5,
        }
        for _ in range(CASES)
    ]
    for case, kafka in zip(cases, answers("Charging.java", cases), strict=True):
        kafka["found"] = sorted((sorted(entity) for entity in kafka["found"]), key=repr)
        assert found(case) == kafka, case


def found(case: dict[str, Any]) -> dict[str, Any]:
    component = DescribeClientQuotasRequest.ComponentData
    components = [component(entity_type=type, match_type=kind, match=match) for type, kind, match in case["components"]]
    quotas = {quota_entity((type, name) for type, name in parts): {"k": 1.0} for parts in case["quotas"]}
    try:
        asked = QuotaFilter(components, strict=case["strict"])
    except Refused as refused:
        return {"found": [], "error": refused.error.code, "why": refused.why}
    told = [[list(part) for part in entity] for entity, _ in asked.among(quotas)]
    return {"found": sorted(told, key=repr), "error": 0, "why": ""}
