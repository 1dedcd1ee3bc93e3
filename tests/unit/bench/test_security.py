from __future__ import annotations

import pytest

from bench.security import rights
from bench.security.rights import ACLS, ACLS_COUNT, OPEN, QUOTAS, Costs


def test_what_is_more_is_told_round_by_round() -> None:
    """A round in which the machine was busy is as slow for all, so it is compared with itself."""
    costs = Costs()
    for open_us, quotas_us, acls_us in ((10.0, 10.4, 10.0), (30.0, 31.2, 30.0), (20.0, 20.8, 19.0)):
        for node, value in ((OPEN, open_us), (QUOTAS, quotas_us), (ACLS, acls_us)):
            costs.add("a load", node, value)
            costs.add("another", node, value)
    assert costs.more("a load", QUOTAS) == pytest.approx(0.04)
    assert costs.more("a load", ACLS) == 0
    assert costs.more_of_all(QUOTAS) == pytest.approx(0.04)
    assert "| a load | 20 | 20.8 | +4.0% | 19 | +0.0% |" in rights.section(costs)


def test_there_are_as_many_acls_as_it_says_and_no_two_alike() -> None:
    every = list(rights.acls())
    assert len(set(every)) == ACLS_COUNT
    assert 1_000 < rights._looked_at() < 2_000
