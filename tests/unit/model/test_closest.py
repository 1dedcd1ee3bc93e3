"""The name that was probably meant."""

from __future__ import annotations

import pytest

from penstock.model.closest import closest, did_you_mean


@pytest.mark.parametrize(
    ("given", "meant"),
    [("ordrs", "orders"), ("ORDERS", "orders"), ("order", "orders"), ("Paymnts", "Payments"), ("qqq", None)],
)
def test_the_nearest_name_is_found_whatever_its_case(given: str, meant: str | None) -> None:
    assert closest(given, ["orders", "Payments", "clicks"]) == meant


def test_a_sentence_ends_with_the_name_or_with_nothing() -> None:
    assert did_you_mean("ordrs", ["orders"]) == "; did you mean orders?"
    assert did_you_mean("ordrs", []) == ""
