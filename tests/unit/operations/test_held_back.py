"""Transactions that hold readers back: which of them are late, and how they are told."""

from __future__ import annotations

import pytest

from penstock.client.admin import ClusterInfo, OpenTransaction
from penstock.operations import held_back
from penstock.operations.diagnosis.findings import transaction_findings
from penstock.operations.health import reasons

NOW_MS = 10_000_000
MINUTE_MS = 60_000


def hanging(age_ms: int) -> OpenTransaction:
    return OpenTransaction("orders", 1, 17, 4_000, 3, -1, NOW_MS - age_ms)


def known(age_ms: int, timeout_ms: int = MINUTE_MS) -> OpenTransaction:
    """Its last record is young: what counts is when it began."""
    started_ms = NOW_MS - age_ms
    return OpenTransaction("orders", 0, 5, 4_001, 0, 2, NOW_MS - 10, "shop-1", "Ongoing", started_ms, timeout_ms)


@pytest.mark.parametrize(
    ("transaction", "late"),
    [
        (hanging(15 * MINUTE_MS), False),
        (hanging(15 * MINUTE_MS + 1), True),
        (known(6 * MINUTE_MS), False),
        (known(6 * MINUTE_MS + 1), True),
        (known(60 * MINUTE_MS, timeout_ms=55 * MINUTE_MS), False),
        (known(60 * MINUTE_MS, timeout_ms=54 * MINUTE_MS), True),
    ],
)
def test_one_is_late_when_nobody_will_end_it_or_somebody_should_have(transaction: OpenTransaction, late: bool) -> None:
    assert held_back.late(transaction, NOW_MS) is late
    found = reasons(ClusterInfo("id", 1, 5, []), [], {}, {}, held_by=[transaction], now_ms=NOW_MS)
    assert [reason.kind for reason in found] == ["late_transactions"] * late
    assert len(transaction_findings([transaction], NOW_MS)) == (not late)


def test_they_are_told_with_place_owner_and_age() -> None:
    assert held_back.words(hanging(90 * MINUTE_MS), NOW_MS) == (
        "orders-1 from offset 17 (producer 4000, no coordinator knows it, last written 1 h 30 min ago)"
    )
    assert held_back.words(known(2 * MINUTE_MS), NOW_MS) == "orders-0 from offset 5 ('shop-1', open for 2 min 0 s)"


def test_what_has_just_begun_is_not_worth_a_word() -> None:
    assert transaction_findings([known(MINUTE_MS), hanging(MINUTE_MS)], NOW_MS) == []
    (notice,) = transaction_findings([known(MINUTE_MS + 1)], NOW_MS)
    assert (notice.level, notice.kind) == ("notice", "open_transaction")
    assert "penstock txn fence shop-1" in notice.attempt
