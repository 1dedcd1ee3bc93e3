"""Which limit holds for whom."""

from __future__ import annotations

import math

import pytest

from penstock.metadata.image import QuotaEntity, quota_entity
from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.security.quotas.entities import check_entity, check_limit
from penstock.security.quotas.limits import Limit, Limits

KEY = "producer_byte_rate"


def entity(**names: str | None) -> QuotaEntity:
    return quota_entity((type.replace("_", "-"), name) for type, name in names.items())


def limits(*entities: QuotaEntity) -> Limits:
    return Limits({each: {KEY: 100.0 + number} for number, each in enumerate(entities)})


def test_the_first_of_eight_levels_holds() -> None:
    order = [
        (entity(user="u", client_id="c"), ("u", "c")),
        (entity(user="u", client_id=None), ("u", "c")),
        (entity(user="u"), ("u", "")),
        (entity(user=None, client_id="c"), ("u", "c")),
        (entity(user=None, client_id=None), ("u", "c")),
        (entity(user=None), ("u", "")),
        (entity(client_id="c"), ("", "c")),
        (entity(client_id=None), ("", "c")),
    ]
    for first in range(len(order)):
        left = limits(*(each for each, _ in order[first:]))
        assert left.of(KEY, "u", "c") == Limit(KEY, 100, *order[first][1])
    assert Limits({}).of(KEY, "u", "c") is None


def test_a_level_without_this_key_is_no_level() -> None:
    some = Limits({entity(user="u"): {"consumer_byte_rate": 1.0}, entity(client_id="c"): {KEY: 2.0}})
    assert some.of(KEY, "u", "c") == Limit(KEY, 2, "", "c")
    assert some.keys == {KEY, "consumer_byte_rate"}


def test_a_client_without_a_name_has_the_limits_of_its_user_only() -> None:
    pairs = (entity(user="u", client_id=None), entity(user=None, client_id=None), entity(client_id=None))
    assert limits(*pairs).of(KEY, "u", "") is None
    assert limits(*pairs, entity(user=None)).of(KEY, "u", "") == Limit(KEY, 103, "u", "")


def test_an_endless_limit_can_be_reckoned_with() -> None:
    found = Limits({entity(user="u"): {KEY: math.inf}}).of(KEY, "u", "c")
    assert found is not None
    assert math.isfinite(found.value * 11)


def test_addresses_have_a_limit_of_new_connections() -> None:
    rate = {"connection_creation_rate": 5.0}
    some = Limits({entity(ip="10.0.0.1"): rate, entity(ip="::1"): {"connection_creation_rate": 7.0}})
    assert some.connections_of("10.0.0.1") == 5
    assert some.connections_of("0:0:0:0:0:0:0:1") == 7
    assert some.connections_of("10.0.0.2") is None
    assert Limits({entity(ip=None): rate, entity(ip="by.name"): rate}).connections_of("10.0.0.2") == 5


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], "Invalid empty client quota entity"),
        ([("user", "a"), ("user", "b")], "Invalid client quota entity, duplicate entity entry user"),
        ([("host", "a")], "Unhandled client quota entity type: host"),
        ([("user", "")], "Empty user not supported"),
        (
            [("ip", "10.0.0.1"), ("user", "a")],
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ([("ip", "no such host")], "no such host is not a valid IP or resolvable host."),
    ],
)
def test_an_invalid_entity_is_refused_in_kafkas_words(parts: list[tuple[str, str | None]], why: str) -> None:
    with pytest.raises(Refused) as refused:
        check_entity(parts)
    assert (refused.value.error, refused.value.why) == (INVALID_REQUEST, why)


@pytest.mark.parametrize(
    ("of", "key", "value", "why"),
    [
        (entity(user="u"), "connection_creation_rate", 1, "Invalid configuration key connection_creation_rate"),
        (entity(ip=None), KEY, 1, f"Invalid configuration key {KEY}"),
        (entity(user="u"), KEY, 0, f"Quota {KEY} must be greater than 0"),
        (entity(user="u"), "request_percentage", math.nan, "Quota request_percentage must be greater than 0"),
        (entity(user="u"), KEY, 1.5, f"{KEY} cannot be a fractional value."),
        (entity(user="u"), KEY, 1e19, f"Proposed value for {KEY} is too large for a LONG."),
        (
            entity(ip=None),
            "connection_creation_rate",
            3e9,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_an_invalid_limit_is_refused_in_kafkas_words(of: QuotaEntity, key: str, value: float, why: str) -> None:
    with pytest.raises(Refused) as refused:
        check_limit(of, key, value)
    assert (refused.value.error, refused.value.why) == (INVALID_REQUEST, why)


def test_shares_may_be_fractions() -> None:
    check_limit(entity(client_id=None), "request_percentage", 0.5)
    check_limit(entity(user="u", client_id="c"), "controller_mutation_rate", 2.25)
    check_limit(check_entity([("ip", None)]), "connection_creation_rate", 10)
    check_limit(entity(user="u"), KEY, float(1 << 63))  # no larger than the highest LONG, as doubles go
