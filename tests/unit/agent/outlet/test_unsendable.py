"""Which records can never be sent, and what becomes of them."""

from __future__ import annotations

import pytest

from penstock.agent.outlet.unsendable import (
    DEAD_LETTER_BYTES_MAX,
    again,
    dead_letters,
    too_large,
    why_never,
)
from penstock.agent.portion import Parcel
from penstock.client.errors import BrokerRefused, ClientError, Closed, RecordTooLarge, TimedOutWaiting
from penstock.model.errors import INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, TOPIC_AUTHORIZATION_FAILED

LIMIT = 10_000


def parcel() -> Parcel:
    headers = [(("host", b"here"),)] * 4
    return Parcel("t", [b"a", b"b" * 9_990, b"c", b"d" * 20_000], [b"k", None, b"k", None], list(headers), [1, 2, 3, 4])


def test_sizes_count_everything_that_is_in_a_record() -> None:
    assert too_large(parcel(), LIMIT) == [1, 3]
    assert too_large(Parcel("t", [b"x" * 4_000] * 3), LIMIT) == []
    assert too_large(Parcel("t", [b"x" * 4_000] * 3, [None, b"k" * 6_000, b"k"]), LIMIT) == [1]
    assert too_large(Parcel("t", []), LIMIT) == []


@pytest.mark.parametrize(
    ("failure", "rows"),
    [
        (RecordTooLarge("the first that did not fit takes all behind it along"), [1, 3]),
        (RecordTooLarge("one alone", error=MESSAGE_TOO_LARGE), [0, 1, 2, 3]),
        (BrokerRefused("no key", error=INVALID_RECORD), [1, 3]),
        (BrokerRefused("too old", error=INVALID_TIMESTAMP), []),
        (BrokerRefused("not allowed yet", error=TOPIC_AUTHORIZATION_FAILED), []),
        (TimedOutWaiting("later", retriable=True), []),
        (ClientError("one of them cannot be encoded"), []),
    ],
)
def test_what_is_hopeless_and_what_is_tried_again(failure: ClientError, rows: list[int]) -> None:
    assert [row for row in range(4) if why_never(parcel(), row, failure, LIMIT)] == rows


def test_what_hope_there_was_ends() -> None:
    times = Parcel("t", [b"a"], None, None, [1])
    refused = BrokerRefused("too old", error=INVALID_TIMESTAMP)
    assert why_never(times, 0, refused, LIMIT) is None
    (now,) = again(times, [0], refused)
    assert now.timestamps_ms is None
    assert why_never(now, 0, refused, LIMIT) is not None
    keyed = Parcel("t", [b"a"], [b"k"])
    assert why_never(keyed, 0, BrokerRefused("whatever", error=INVALID_RECORD), LIMIT) is not None
    assert why_never(keyed, 0, ClientError("cannot be encoded"), LIMIT) == "cannot be encoded"


def test_some_rows_go_again_as_they_were() -> None:
    whole = parcel()
    assert again(whole, [0, 2], TimedOutWaiting("later")) == [
        Parcel("t", [b"a", b"c"], [b"k", b"k"], [(("host", b"here"),)] * 2, [1, 3])
    ]
    halves = again(Parcel("t", [b"1", b"2", b"3"]), [0, 1, 2], ClientError("one of them"))
    assert [half.values for half in halves] == [[b"1"], [b"2", b"3"]]


def test_a_dead_letter_fits_everywhere_and_says_why() -> None:
    large = Parcel("t", [b"x" * 2_000_000], [b"k" * 100_000], [(("host", b"here"), ("big", b"y" * 100_000))], [7])
    found = dead_letters(large, [0], ["too large ☹" * 200], "dead")
    assert (found.topic, found.keys, found.timestamps_ms) == ("dead", [None], None)
    assert len(found.values[0]) == DEAD_LETTER_BYTES_MAX
    assert found.headers is not None
    named = dict(found.headers[0])
    assert list(named) == ["host", "agent.topic", "agent.error"]
    assert named["agent.topic"] == b"t"
    assert named["agent.error"].decode().startswith("too large ☹")
    assert len(named["agent.error"]) < 1_000


def test_records_without_a_value_stay_without_one_wherever_they_go() -> None:
    parcel = Parcel("t", [b"a", b"", b"c", b""], [b"1", b"1", b"2", b"3"], nulls=frozenset({1, 3}))
    assert parcel.sent_values() == [b"a", None, b"c", None]
    (left,) = again(parcel, [1, 2, 3], Closed("gone"))
    assert (left.keys, left.sent_values()) == ([b"1", b"2", b"3"], [None, b"c", None])
    halves = again(parcel, [0, 1, 3], ClientError("one of them"))
    assert [half.sent_values() for half in halves] == [[b"a"], [None, None]]
    assert dead_letters(parcel, [3], ["why"], "dead").sent_values() == [None]
