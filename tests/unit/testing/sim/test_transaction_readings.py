"""The history checker of transactions: it catches each anomaly, and does not charge what Kafka allows."""

from __future__ import annotations

from penstock.testing.sim.transactions.books import Line
from penstock.testing.sim.transactions.ledger import Attempt, Ledger, Told
from penstock.testing.sim.transactions.readings import Fate, Reading, Shown, check_attempts, check_reading


def line(value: bytes, committed: bool | None = True, decided_s: float = 1.0) -> Line:
    made = Line(None, value, 0.5, open_=True)
    made.committed, made.decided_s = committed, decided_s
    return made


LOG: dict[int, Fate] = {
    0: line(b"a"), 1: line(b"b", committed=False), 3: line(b"c"), 4: line(b"d", decided_s=5.0),
    6: line(b"e", committed=None),
}  # fmt: skip
"""Offsets 2 and 5 are markers; `e` belongs to a transaction that is open."""


def reading(
    *shown: tuple[int, bytes], committed_only: bool = True, complete: bool = True, at_s: float = 9.0
) -> Reading:
    made = Reading("r", "ledger-0", committed_only=committed_only, complete=complete)
    made.shown += [Shown(offset, value, at_s) for offset, value in shown]
    return made


def objections(made: Reading) -> list[str]:
    return [words.partition(":")[0] for words in check_reading(made, LOG)]


def test_a_reader_that_is_shown_what_is_committed_in_order_has_nothing_wrong() -> None:
    assert objections(reading((0, b"a"), (3, b"c"), (4, b"d"))) == []
    assert objections(reading((0, b"a"), (1, b"b"), (3, b"c"), (4, b"d"), (6, b"e"), committed_only=False)) == []


def test_an_aborted_read() -> None:
    assert objections(reading((0, b"a"), (1, b"b"), (3, b"c"))) == ["aborted read (G1a)"]


def test_a_precommitted_read() -> None:
    assert objections(reading((0, b"a"), (3, b"c"), (4, b"d"), (6, b"e"))) == ["precommitted read"]
    early = reading((0, b"a"), (3, b"c"), (4, b"d"), at_s=4.0)
    assert objections(early) == ["precommitted read"], "it was committed after it was shown"


def test_a_skipped_poll() -> None:
    assert objections(reading((0, b"a"), (4, b"d"))) == ["skipped poll"]
    assert objections(reading((3, b"c"), (4, b"d"))) == ["skipped poll"], "the first one was not shown"
    assert objections(reading((0, b"a"), (3, b"c"), committed_only=False)) == ["skipped poll"]
    assert objections(reading((0, b"a"), (4, b"d"), complete=False)) == [], "compaction may have taken it"


def test_a_non_monotonic_poll() -> None:
    assert objections(reading((0, b"a"), (3, b"c"), (0, b"a"))) == ["non-monotonic poll"]
    assert objections(reading((0, b"a"), (0, b"a"), (3, b"c"))) == ["non-monotonic poll"]


def test_another_record_than_the_log_has() -> None:
    assert objections(reading((0, b"z"))) == ["another record"]


def attempt(told: Told, *values: bytes, commit_asked: bool = True) -> Attempt:
    made = Attempt(1, "id", "client")
    made.told, made.commit_asked = told, commit_asked
    made.values += values
    return made


def charges(made: Attempt, fates: dict[bytes, list[bool | None]]) -> list[str]:
    return [words.partition(":")[0] for words in check_attempts([made], fates, lasting={b"a", b"b"})]


def test_transactions_that_came_to_what_was_told() -> None:
    assert charges(attempt(Told.COMMITTED, b"a", b"b"), {b"a": [True], b"b": [True]}) == []
    assert charges(attempt(Told.ABORTED, b"a", b"b"), {b"a": [False]}) == []
    assert charges(attempt(Told.NOTHING, b"a", b"b"), {b"a": [True], b"b": [True]}) == []
    assert charges(attempt(Told.NOTHING, b"a", b"b"), {b"a": [False], b"b": [False]}) == []
    assert charges(attempt(Told.NOTHING, b"a", b"b"), {}) == []


def test_a_lost_write() -> None:
    assert charges(attempt(Told.COMMITTED, b"a", b"b"), {b"a": [True]}) == ["lost write"]
    assert charges(attempt(Told.COMMITTED, b"a", b"b"), {b"a": [True], b"b": [False]}) == ["lost write"]
    assert charges(attempt(Told.COMMITTED, b"a", b"b"), {b"a": [True], b"b": [None]}) == ["lost write"]
    assert charges(attempt(Told.COMMITTED, b"a", b"c"), {b"a": [True]}) == [], "where records go nobody can tell"
    assert charges(attempt(Told.COMMITTED, b"a", b"c"), {b"a": [True], b"c": [None]}) == [], "its topic went first"
    assert charges(attempt(Told.COMMITTED, b"a", b"c"), {b"a": [True], b"c": [False]}) == ["lost write"]


def test_a_duplicate() -> None:
    assert charges(attempt(Told.COMMITTED, b"a"), {b"a": [True, True]}) == ["duplicate"]
    assert charges(attempt(Told.COMMITTED, b"a"), {b"a": [False, True]}) == [], "one of them was aborted"


def test_a_torn_transaction() -> None:
    assert charges(attempt(Told.NOTHING, b"a", b"b"), {b"a": [True], b"b": [False]}) == ["torn transaction"]
    assert charges(attempt(Told.NOTHING, b"a", b"b"), {b"b": [True]}) == ["torn transaction"]


def test_a_wrong_outcome() -> None:
    assert charges(attempt(Told.ABORTED, b"a"), {b"a": [True]}) == ["wrong outcome"]
    never = attempt(Told.NOTHING, b"a", commit_asked=False)
    assert charges(never, {b"a": [True]}) == ["wrong outcome"]
    assert charges(never, {b"a": [False]}) == []


def test_every_record_of_a_ledger_has_its_own_value_and_knows_its_transaction() -> None:
    values = iter((b"t:1", b"t:2"))
    ledger = Ledger(lambda: next(values))
    first, second = ledger.begin("id", "one"), ledger.begin("id", "two")
    assert (ledger.write(first), ledger.write(second)) == (b"t:1", b"t:2")
    assert ledger.entries[b"t:2"].attempt is second
    assert (first.values, second.number) == ([b"t:1"], 2)
