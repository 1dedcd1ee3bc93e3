"""Where reading begins when nothing says so."""

from __future__ import annotations

import pytest

from penstock.client.consumer.reset import parse_reset
from penstock.client.errors import BadSetting


@pytest.mark.parametrize(
    ("text", "looks_for"),
    [
        ("earliest", -2),
        ("latest", -1),
        ("none", None),
        ("by_duration:PT1H", 10_000_000 - 3_600_000),
        ("by_duration:PT2H1M", 10_000_000 - 7_260_000),
        ("by_duration:P1DT1M", 0),  # before 1970: a broker would take a number below 0 for something else
        ("by_duration:PT0.5S", 10_000_000 - 500),
    ],
)
def test_a_policy_says_which_time_to_look_for(text: str, looks_for: int | None) -> None:
    assert parse_reset(text).looks_for(10_000_000) == looks_for


@pytest.mark.parametrize("text", ["", "newest", "by_duration:", "by_duration:1H", "by_duration:P", "by_duration:PT-1H"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="offset_reset"):
        parse_reset(text)
