"""Topics, keys, headers, values and times of records."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.portion import LOSSY, TRUNCATED, Origin, Portion
from penstock.agent.routing.topics import TOPICS_MAX, TopicNames, allowed_name, wrong_topic
from penstock.conditions.paths import Fields
from tests.unit.agent.transforms.chains import NOW_MS, ORIGIN, apply, chain, header, parcel, steps

JSON = 'parse = "json"'


def test_topics_are_made_of_fields_and_of_where_events_come_from() -> None:
    text = steps(JSON, head='topic = "{input}.{service}"')
    result = apply(text, '{"service":"cart"}', '{"service":"über pay"}', '{"service":"cart"}')
    assert [(each.topic, len(each.values)) for each in result.parcels] == [("web.cart", 2), ("web._ber_pay", 1)]


def test_a_topic_whose_field_is_not_there_is_unknown_or_the_event_is_dead() -> None:
    result = apply(steps(JSON, head='topic = "logs.{service}"'), "{}")
    assert (result.parcels[0].topic, result.failed, result.dead) == ("logs.unknown", 1, 0)
    result = apply(steps(JSON, head='topic = "logs.{service}"\ndead_letters = "dead"'), "{}", '{"service":"a"}')
    assert [each.topic for each in result.parcels] == ["logs.a", "dead"]
    assert header(result.parcels[1], 0, "agent.error") == "topic logs.{service}: a field of it is not there"
    assert (result.failed, result.dead) == (1, 1)


def test_an_event_that_failed_before_is_counted_once() -> None:
    result = apply(steps(JSON, head='topic = "logs.{service}"'), "broken")
    assert (result.parcels[0].topic, result.failed) == ("logs.unknown", 1)


def test_a_field_with_ids_makes_no_more_than_so_many_topics() -> None:
    text = steps(JSON, head='topic = "u.{id}"\ndead_letters = "dead"')
    lines = [json.dumps({"id": number}) for number in range(TOPICS_MAX + 5)]
    result = apply(text, *lines, *lines[:3])
    assert len(result.parcels) == TOPICS_MAX + 1
    assert (result.parcels[-1].topic, len(result.parcels[-1].values), len(result.parcels[0].values)) == ("dead", 5, 2)


@pytest.mark.parametrize("name", ["__consumer_offsets", "__x", "", "äöü", "."])
def test_what_senders_write_reaches_no_topic_of_the_cluster(name: str) -> None:
    assert apply(steps(JSON, head='topic = "{n}"'), json.dumps({"n": name})).parcels[0].topic == "unknown"


@given(st.text(max_size=300))
def test_any_text_gives_a_name_that_a_topic_may_have(text: str) -> None:
    assert wrong_topic(allowed_name(text)) is None
    name = TopicNames().name(text)
    assert name == "" or (wrong_topic(name) is None and not name.startswith("__"))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("user", b"ann"),
        ("n", b"7"),
        ("in.side", b"true"),
        ("host", b"db-3"),
        ("{host}", b"web-1"),
        ("{user}/{n}", b"ann/7"),
        ("nothing", None),
        ("{user}/{nothing}", None),
    ],
)
def test_a_key_is_a_field_or_a_template(key: str, expected: bytes | None) -> None:
    line = '{"user":"ann","n":7,"in":{"side":true},"host":"db-3"}'
    assert parcel(steps(JSON, head=f'topic = "t"\nkey = "{key}"'), line).keys == [expected]


def test_the_line_itself_can_be_the_key() -> None:
    assert parcel('topic = "t"\nkey = "message"', "a", "b").keys == [b"a", b"b"]


@pytest.mark.parametrize(
    ("head", "origin", "expected"),
    [
        ("", ORIGIN, {"host": "web-1", "path": "/var/log/web.log"}),
        ("", Origin("web", "web-1", peer="10.0.0.1:99"), {"host": "web-1", "peer": "10.0.0.1:99"}),
        ("", Origin("web", "web-1"), {"host": "web-1"}),
        ('headers = ["input", "offset"]', ORIGIN, {"input": "web", "offset": "40"}),
        ('headers = ["peer"]', ORIGIN, {}),
    ],
)
def test_headers_say_where_a_record_comes_from(head: str, origin: Origin, expected: dict[str, str]) -> None:
    only = parcel(f'topic = "t"\n{head}', "x", origin=origin, positions=[40])
    assert {name: value.decode() for name, value in (only.headers or [()])[0]} == expected


def test_no_headers_cost_nothing() -> None:
    assert parcel('topic = "t"\nheaders = []', "x").headers is None


def test_what_inputs_mark_is_a_header_of_that_record() -> None:
    only = parcel('topic = "t"\nheaders = []', "a", "b", "c", marks={1: TRUNCATED, 2: LOSSY})
    assert [header(only, place, "agent.mark") for place in range(3)] == [None, "truncated", "lossy"]


def test_marks_stay_with_their_event_when_others_are_filtered() -> None:
    only = parcel(steps("filter = \"message != 'a'\""), "a", "b", "c", marks={2: TRUNCATED}, positions=[0, 2, 4])
    assert [header(only, place, "agent.mark") for place in range(2)] == [None, "truncated"]


def test_raw_json_and_auto() -> None:
    assert parcel('topic = "t"', b"\xff").values == [b"\xff"]
    assert parcel('topic = "t"\nencode = "json"', b"caf\xe9").values == [b'{"message":"caf\\\\xe9"}']
    assert parcel(steps(JSON, "add = { a = 1 }", head='topic = "t"\nencode = "raw"'), "{}").values == [b"{}"]
    assert parcel(steps(JSON, "add = { a = 1 }"), "{}").values == [b'{"a":1}']
    assert parcel(steps(JSON, head='topic = "t"\nencode = "json"'), "x").values == [b'{"message":"x"}']


def test_the_time_in_a_field_and_where_there_is_none() -> None:
    text = steps('parse = "json"', head='topic = "t"\ntimestamp = "at"')
    result = apply(text, '{"at":"2026-11-16T09:00:00Z"}', "{}")
    assert (result.parcels[0].timestamps_ms, result.untimed) == ([NOW_MS - 3_600_000, NOW_MS], 1)


def test_without_any_time_the_producer_stamps() -> None:
    assert parcel('topic = "t"', "x").timestamps_ms is None


def test_an_input_may_know_keys_and_which_records_have_no_value() -> None:
    def portion() -> Portion:
        fields: list[Fields] = [{"kind": "a"}, {"kind": "b"}, {"kind": "a"}, {"kind": "a"}]
        values = [json.dumps(each).encode() for each in fields]
        values[2] = b""
        keys: list[bytes | None] = [b"1", b"2", b"1", None]
        return Portion(ORIGIN, values, fields=fields, keys=keys, nulls=frozenset({2}), faithful=True)

    def sent(text: str) -> list[tuple[str, list[bytes | None] | None, list[bytes | None]]]:
        result = chain(text).apply(portion(), NOW_MS)
        return [(each.topic, each.keys, list(each.sent_values())) for each in result.parcels]

    a, b = b'{"kind": "a"}', b'{"kind": "b"}'
    assert sent('topic = "all"') == [("all", [b"1", b"2", b"1", None], [a, b, None, a])]
    assert sent('topic = "of.{kind}"') == [("of.a", [b"1", b"1", None], [a, None, a]), ("of.b", [b"2"], [b])]
    assert sent('topic = "all"\nkey = "kind"')[0][1] == [b"a", b"b", b"a", b"a"]
    written = sent(steps("add = { n = 1 }"))
    assert written[0][2] == [b'{"kind":"a","n":1}', b'{"kind":"b","n":1}', None, b'{"kind":"a","n":1}']
    assert sent(steps("filter = \"kind == 'a'\""))[0][1:] == ([b"1", b"1", None], [a, None, a])
