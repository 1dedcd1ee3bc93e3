"""A broker that is away is told at once, then ever more rarely, and when it is back."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.outage import FIRST_SILENCE_MS, SILENCE_MAX_MS, Outage
from tests.patience import within


def away() -> Outage:
    return Outage("cannot reach broker 1", "broker 1 answers again")


def test_the_first_failure_is_told_at_once_and_the_next_are_not() -> None:
    outage = away()
    assert outage.failed(0, "refused") == "cannot reach broker 1: refused; trying on"
    assert [outage.failed(at_ms, "refused") for at_ms in range(100, 5_000, 100)] == [None] * 49
    assert outage.failed(5_000, "timed out") == "cannot reach broker 1 for 5.0 s, 51 tries: timed out"


def test_its_end_is_told_with_how_long_it_was() -> None:
    outage = away()
    outage.failed(1_000, "refused")
    assert outage.over(62_000) == "broker 1 answers again, after 1 min 1 s"
    assert outage.over(62_001) is None
    assert outage.failed(63_000, "refused") == "cannot reach broker 1: refused; trying on"


def test_commands_tell_of_outages_that_last_and_of_their_end() -> None:
    program = """
from penstock.cli.connection import _speak
from penstock.client.outage import Outage, warn

_speak(0)
for lasts_ms in (4_000, 14_000):
    outage = Outage.of_broker(1)
    for at_ms in range(0, lasts_ms, 1_000):
        warn(outage.failed(at_ms, "refused"))
    warn(outage.over(lasts_ms))
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=within(60), check=True
    )
    assert said.stderr.splitlines() == [
        "penstock: cannot reach broker 1 for 5.0 s, 6 tries: refused",
        "penstock: broker 1 answers again, after 14.0 s",
    ]


def test_what_never_failed_has_no_end() -> None:
    assert away().over(5) is None


@given(st.lists(st.integers(1, 2_000), min_size=2, max_size=300))
def test_a_silence_is_never_shorter_than_the_one_it_was_promised(gaps_ms: list[int]) -> None:
    outage, now_ms, told_ms = away(), 0, []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        if outage.failed(now_ms, "refused") is not None:
            told_ms.append(now_ms)
    assert told_ms[0] == gaps_ms[0]
    for number, (before_ms, after_ms) in enumerate(pairwise(told_ms)):
        promised_ms = min(FIRST_SILENCE_MS << number, SILENCE_MAX_MS)
        # A line comes with the first failure after its time.
        assert promised_ms <= after_ms - before_ms < promised_ms + max(gaps_ms)


def test_an_outage_of_a_day_is_told_a_few_hundred_times_at_most() -> None:
    outage = away()
    told = [at_ms for at_ms in range(0, 86_400_000, 1_000) if outage.failed(at_ms, "refused") is not None]
    assert told[:5] == [0, 5_000, 15_000, 35_000, 75_000]
    assert len(told) < 300
