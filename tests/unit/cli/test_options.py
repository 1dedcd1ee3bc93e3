"""Options that commands share."""

from __future__ import annotations

import click
import pytest

from penstock.cli.options import pairs


def test_pairs_become_a_mapping_and_values_may_hold_equals_signs() -> None:
    assert pairs(("a=1", " b = x=y ", "c=")) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("given", ["a", "=1", " =1"])
def test_what_is_no_pair_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is not key=value"):
        pairs((given,))
