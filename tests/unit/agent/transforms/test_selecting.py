"""filter, sample, route, timestamp: which events go where, and when they were."""

from __future__ import annotations

import json

import pytest

from penstock.agent.portion import Origin, Portion
from penstock.agent.routing.topics import TOPICS_MAX
from tests.unit.agent.transforms.chains import NOW_MS, apply, chain, header, parcel, steps

JSON = 'parse = "json"'


def numbers(count: int) -> list[str]:
    return [json.dumps({"n": n, "user": f"u{n % 50}"}) for n in range(count)]


def test_a_filter_keeps_what_meets_it_or_drops_it() -> None:
    lines = numbers(6)
    assert parcel(steps(JSON, 'filter = "n >= 4"'), *lines).values == [line.encode() for line in lines[4:]]
    result = apply(steps(JSON, 'filter = "n >= 4"\naction = "drop"'), *lines)
    assert result.parcels[0].values == [line.encode() for line in lines[:4]]
    assert (result.filtered, result.reasons) == (2, {"step 2 (filter)": 2})


def test_a_filter_of_everything_leaves_no_parcel() -> None:
    result = apply(steps("filter = \"message contains 'x'\""), "a", "b")
    assert (result.parcels, result.filtered) == ([], 2)


def test_what_failed_before_is_not_filtered_away() -> None:
    result = apply(steps(JSON, 'filter = "n == 1"'), "broken", '{"n":2}')
    assert (result.parcels[0].values, result.filtered, result.failed) == ([b"broken"], 1, 1)


def test_one_in_ten_is_exact_across_portions() -> None:
    sampling = chain(steps("sample = 10"))
    kept = [
        len(parcel.values)
        for _ in range(7)
        for parcel in sampling.apply(Portion(Origin("web", "h"), [b"x"] * 13), NOW_MS).parcels
    ]
    assert sum(kept) == 10


def test_a_rate_is_kept_on_the_whole() -> None:
    assert 800 < len(parcel(steps("sample = 0.1"), *["x"] * 10_000).values) < 1_200


@pytest.mark.parametrize(("rate", "kept"), [("0", 0), ("1", 100), ("0.0", 0), ("1.0", 100)])
def test_the_ends_of_the_range(rate: str, kept: int) -> None:
    assert sum(len(each.values) for each in apply(steps(f"sample = {rate}"), *["x"] * 100).parcels) == kept


def test_related_events_go_on_together_on_every_agent() -> None:
    step = 'sample = 0.3\nby = "user"'
    kept = parcel(steps(JSON, step), *numbers(1_000)).values
    users = {json.loads(value)["user"] for value in kept}
    assert 5 <= len(users) <= 25
    assert len(kept) == 20 * len(users)
    assert {json.loads(value)["user"] for value in parcel(steps(JSON, step), *numbers(500)).values} == users


def test_what_must_always_go_on_does() -> None:
    kept = parcel(steps(JSON, 'sample = 0.0\nalways = "n >= 97"'), *numbers(100)).values
    assert [json.loads(value)["n"] for value in kept] == [97, 98, 99]


ROUTES = """route = [
  { when = "n == 0", topic = "zero" },
  { when = "n < 3", topic = "small.{user}" },
]
"""


def test_the_first_rule_that_is_met_says_the_topic() -> None:
    parcels = apply(steps(JSON, ROUTES), *numbers(4)).parcels
    assert [(each.topic, len(each.values)) for each in parcels] == [
        ("zero", 1),
        ("small.u1", 1),
        ("small.u2", 1),
        ("t", 1),
    ]


def test_an_event_may_go_to_all_topics_whose_rules_it_meets() -> None:
    parcels = apply(steps(JSON, ROUTES + 'to = "all"'), *numbers(2)).parcels
    assert [(each.topic, [json.loads(value)["n"] for value in each.values]) for each in parcels] == [
        ("zero", [0]),
        ("small.u0", [0]),
        ("small.u1", [1]),
    ]


def test_a_later_route_that_is_met_decides() -> None:
    text = steps(JSON, 'route = [{ topic = "a" }]', 'route = [{ when = "n == 1", topic = "b" }]')
    assert [each.topic for each in apply(text, *numbers(3)).parcels] == ["a", "b"]


def test_a_rule_whose_field_is_not_there_sends_to_unknown_or_to_dead_letters() -> None:
    route = 'route = [{ topic = "by.{who}" }]'
    result = apply(steps(JSON, route), '{"n":1}')
    assert (result.parcels[0].topic, result.failed) == ("by.unknown", 1)
    result = apply(steps(JSON, route, head='topic = "t"\ndead_letters = "dead"'), '{"n":1}')
    assert (result.parcels[0].topic, result.dead) == ("dead", 1)
    assert header(result.parcels[0], 0, "agent.error") == "step 2 (route): topic by.{who}: a field of it is not there"


def test_routes_and_the_topic_share_one_bound() -> None:
    text = steps(JSON, 'route = [{ when = "n < 900", topic = "r{n}" }]', head='topic = "i{n}"')
    result = apply(text, *numbers(TOPICS_MAX + 10))
    assert len(result.parcels) == TOPICS_MAX + 1
    assert (result.parcels[-1].topic, result.failed) == ("iunknown", 10)


@pytest.mark.parametrize(
    ("options", "value", "expected_ms"),
    [
        ("", '"2026-11-16T09:00:00Z"', NOW_MS - 3_600_000),
        ("", '"16/Nov/2026:10:00:00 +0100"', NOW_MS - 3_600_000),
        ("", "1794819600", NOW_MS - 3_600_000),
        ('format = "epoch_ns"', '"1794819600123456789"', NOW_MS - 3_600_000 + 123),
        ('zone = "+01:00"', '"2026-11-16 10:00:00"', NOW_MS - 3_600_000),
        ('zone = "Europe/Berlin"\nformat = "%d.%m.%Y %H:%M"', '"16.11.2026 10:00"', NOW_MS - 3_600_000),
        ('format = "%b %d %H:%M:%S"', '"Nov 16 09:00:00"', NOW_MS - 3_600_000),
    ],
)
def test_the_time_of_an_event_is_what_its_field_says(options: str, value: str, expected_ms: int) -> None:
    result = apply(steps(JSON, f'timestamp = "at"\n{options}'), f'{{"at":{value}}}')
    assert (result.parcels[0].timestamps_ms, result.untimed) == ([expected_ms], 0)


@pytest.mark.parametrize("value", ['"soon"', "null", "[1]", '"2999-01-01T00:00:00Z"', "-5", "true", '"1e999"'])
def test_a_time_that_brokers_would_not_take_is_counted_and_now_stands_for_it(value: str) -> None:
    result = apply(steps(JSON, 'timestamp = "at"'), f'{{"at":{value}}}')
    assert (result.parcels[0].timestamps_ms, result.untimed) == ([NOW_MS], 1)


def test_the_time_that_the_input_knows_stands_where_the_field_says_nothing() -> None:
    text = steps(JSON, 'timestamp = "at"')
    result = apply(text, '{"at":1794819600}', "{}", timestamps_ms=[5, 6])
    assert result.parcels[0].timestamps_ms == [NOW_MS - 3_600_000, 6]
