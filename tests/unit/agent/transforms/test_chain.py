"""The chain as a whole: nothing is lost, whatever steps do."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.agent.portion import Portion
from penstock.agent.routing.batch import Batch
from penstock.agent.routing.router import Router
from penstock.agent.routing.routing import Routing
from penstock.agent.routing.templates import Template
from penstock.agent.transforms import Chain
from penstock.agent.transforms.step import Surroundings
from tests.properties import examples
from tests.unit.agent.transforms.chains import NOW_MS, ORIGIN, chain, header, steps


@dataclass(frozen=True)
class Broken:
    """A step with a mistake of ours in it: it raises for some events, in the middle of a batch."""

    title: str = "step 1 (broken)"

    def make(self, around: Surroundings) -> Callable[[Batch], None]:
        def run(batch: Batch) -> None:
            for fields in batch.own_fields():
                fields["length"] = 10 // len(fields["message"])

        return run


def test_a_step_that_raises_costs_the_events_that_provoke_it_only() -> None:
    broken = Chain([Broken()], Routing(Template.parse("t")), input="web", host="h", chance=random.Random(1))
    result = broken.apply(Portion(ORIGIN, [b"ab", b"", b"abcde"]), NOW_MS)
    (only,) = result.parcels
    assert only.values == [b'{"message":"ab","length":5}', b"", b'{"message":"abcde","length":2}']
    assert header(only, 1, "agent.error") == "step 1 (broken): ZeroDivisionError: integer division or modulo by zero"
    assert result.failed == 1


def test_a_mistake_of_ours_in_routing_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(router: Router, batch: Batch, kept: object) -> list[bytes]:
        raise ZeroDivisionError

    monkeypatch.setattr(Router, "_written", broken)
    result = chain(steps('parse = "json"', "add = { a = 1 }")).apply(Portion(ORIGIN, [b"{}", b'{"b":2}']), NOW_MS)
    (only,) = result.parcels
    assert only.values == [b"{}", b'{"b":2}']
    assert (header(only, 1, "agent.error"), result.failed) == ("routing: ZeroDivisionError", 2)


def test_what_json_cannot_say_fails_alone() -> None:
    fields = [{"a": 1}, {"a": object()}, {"a": 10**5_000}]
    for head in ('topic = "t"\nkey = "a"', 'topic = "t"\nkey = "a"\ndead_letters = "d"'):
        result = chain(head).apply(Portion(ORIGIN, [b"x", b"y", b"z"], fields=list(fields)), NOW_MS)
        assert [value for each in result.parcels for value in each.values] == [b'{"a":1}', b"y", b"z"]
        assert result.failed == 2
        assert (header(result.parcels[-1], -1, "agent.error") or "").startswith("encode: ")


def test_a_chain_without_steps_hands_the_lists_on() -> None:
    portion = Portion(ORIGIN, [b"a", b"b"], timestamps_ms=[1, 2])
    (only,) = chain('topic = "t"').apply(portion, NOW_MS).parcels
    assert only.values is portion.values
    assert only.timestamps_ms is portion.timestamps_ms
    assert only.headers is not None
    assert only.headers[0] is only.headers[1]


EVERYTHING = steps(
    'parse = "json"',
    'parse = "logfmt"\nfrom = "text"\non_error = "keep"',
    'mask = ["email", "token"]',
    'add = { env = "prod", who = "{user.name|nobody}", copy = "{user}" }',
    'rename = { n = "number" }',
    'filter = "number != 3"',
    'sample = 0.8\nby = "number"',
    'route = [{ when = "number > 5", topic = "big.{number}" }, { when = "exists a", topic = "a" }]\nto = "all"',
    'timestamp = "at"',
    head='topic = "t.{number}"\nkey = "user.name"\ntimestamp = "time"\nheaders = ["host", "offset"]',
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
EVENTS = st.dictionaries(st.sampled_from(["n", "number", "text", "user", "at", "time", "a", "env"]), VALUES)


@settings(max_examples=examples(30))
@given(st.lists(st.one_of(EVENTS, st.binary(max_size=20)), max_size=12), st.booleans())
def test_every_event_is_somewhere_and_in_order(events: list[object], dead_letters: bool) -> None:
    lines = [event if isinstance(event, bytes) else msgspec.json.encode(event) for event in events]
    text = 'dead_letters = "dead"\n' + EVERYTHING if dead_letters else EVERYTHING
    result = chain(text).apply(Portion(ORIGIN, lines, positions=range(len(lines))), NOW_MS)
    seen = set()
    for parcel in result.parcels:
        assert parcel.headers is not None
        assert len(parcel.values) == len(parcel.headers) == len(parcel.timestamps_ms or parcel.values)
        offsets = [int(dict(each)["offset"]) for each in parcel.headers]
        assert offsets == sorted(set(offsets))
        seen.update(offsets)
    assert len(seen) + result.filtered == len(lines)
    assert result.dead <= result.failed
