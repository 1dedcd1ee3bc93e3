"""Backoff and errors."""

from __future__ import annotations

import pickle

import pytest

from penstock.client.errors import (
    BrokerRefused,
    ClientError,
    NotAllowed,
    NotReachable,
    RecordTooLarge,
    TimedOutWaiting,
    UnknownTopic,
    link_failure,
    refusal,
)
from penstock.client.retry import Backoff
from penstock.model.errors import NOT_ENOUGH_REPLICAS
from penstock.transport.dial import Severed, TimedOut, Unreachable, Unsupported


def test_waits_double_up_to_their_limit() -> None:
    backoff = Backoff(100, 1_000, chance=lambda: 0.5)
    assert [backoff.delay_ms(failures) for failures in (1, 2, 3, 4, 5, 99)] == [100, 200, 400, 800, 1_000, 1_000]


@pytest.mark.parametrize(("chance", "delay_ms"), [(0.0, 80), (1.0, 120)])
def test_chance_moves_a_wait_by_a_fifth(chance: float, delay_ms: float) -> None:
    assert Backoff(100, 1_000, chance=lambda: chance).delay_ms(1) == pytest.approx(delay_ms)


@pytest.mark.parametrize(
    ("code", "kind"), [(3, UnknownTopic), (29, NotAllowed), (10, RecordTooLarge), (42, BrokerRefused)]
)
def test_an_error_code_picks_its_exception(code: int, kind: type[ClientError]) -> None:
    assert type(refusal(code, None, "t-0")) is kind


def test_an_exception_says_where_why_and_whether_to_try_again() -> None:
    failure = refusal(NOT_ENOUGH_REPLICAS.code, "one of two", "t-0")
    assert str(failure) == "t-0: one of two (NOT_ENOUGH_REPLICAS)"
    assert failure.retriable
    assert not refusal(42, None, "").retriable


@pytest.mark.parametrize(
    ("broken", "kind"),
    [(Unreachable, NotReachable), (Severed, NotReachable), (TimedOut, TimedOutWaiting), (Unsupported, BrokerRefused)],
)
def test_a_link_that_failed_has_an_exception_of_ours(broken: type, kind: type[ClientError]) -> None:
    failure = link_failure(broken("h", 1, "why"))
    assert (type(failure), failure.where, failure.why) == (kind, "h:1", "why")


def test_exceptions_travel_between_processes() -> None:
    there = pickle.loads(pickle.dumps(refusal(3, None, "t")))
    assert (type(there), str(there)) == (UnknownTopic, "t: it does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
