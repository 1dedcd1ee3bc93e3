"""What exactly once decides without brokers: whose positions count, how a transaction ended, what a spool has sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.checkpoints import Row
from penstock.agent.errors import AgentError
from penstock.agent.exactly import identity
from penstock.agent.exactly.allowance import BYTES_MAX, BYTES_MIN, FIRST_BYTES, Allowance
from penstock.agent.exactly.beginning import Begins, Note, begins, note_in
from penstock.agent.exactly.identity import Identity, machine_of
from penstock.agent.exactly.outcome import Outcome, judge
from penstock.agent.exactly.rows import LIVES_MAX, Found, Stamp, UnknownFormat, row_records, stamp_record, take_in
from penstock.agent.inputs.files.ledger import Ledger
from penstock.agent.outlet.marks import Mark, SpoolMarks

ME, CLONE = Identity("web", "m1"), Identity("web", "m2")
names = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)


@given(st.integers(10_000, 1 << 30))
def test_transactions_come_to_what_a_link_carries_in_time(link_bytes_a_second: int) -> None:
    """Whatever it carries: soon none is aborted, and they are as large as the timeout permits."""
    allowance, timeout_ms = Allowance(10_000), 10_000
    for round in range(60):
        took_ms = allowance.bytes / link_bytes_a_second * 1000
        committed = took_ms < timeout_ms
        assert committed or round < 5
        allowance.learn(allowance.bytes, took_ms, committed=committed)
    took_ms = allowance.bytes / link_bytes_a_second * 1000
    assert timeout_ms / 16 <= took_ms <= timeout_ms / 2 or allowance.bytes in (BYTES_MIN, BYTES_MAX)


def test_only_what_was_full_and_went_quickly_lets_transactions_grow() -> None:
    allowance = Allowance(10_000)
    allowance.learn(FIRST_BYTES - 1, 10, committed=True)
    allowance.learn(FIRST_BYTES, 1_300, committed=True)
    allowance.learn(FIRST_BYTES, 10, committed=False)
    assert allowance.bytes == FIRST_BYTES
    allowance.learn(FIRST_BYTES, 1_250, committed=True)
    assert allowance.bytes == 2 * FIRST_BYTES
    # Little that took long says more than the bound does.
    allowance.learn(400_000, 5_000, committed=True)
    assert allowance.bytes == 200_000


@given(names, names, st.integers(0, 1 << 60))
def test_rows_come_back_as_they_were_whatever_a_file_is_called(input: str, key: str, position: int) -> None:
    row, found = Row(key, path=key, position=position, facts={"inode": 7}), Found()
    ((name, value),) = row_records(ME, input, [row], [])
    take_in(found, ME, name, value, 0)
    assert found.rows == {input: {key: row}}
    take_in(found, CLONE, name, None, 1)
    assert found.rows == {input: {key: row}}, "a clone has positions of its own"
    take_in(found, ME, name, None, 2)
    assert found.rows == {input: {}}


def test_a_stamp_tells_life_number_and_the_lives_before() -> None:
    found = Found()
    lives = {f"life {number}": number for number in range(LIVES_MAX + 5)}
    take_in(found, ME, *stamp_record(ME, Stamp("now", 3), lives), 41)
    assert (found.stamp, found.offset) == (Stamp("now", 3), 41)
    assert found.lives["now"] == 3
    assert len(found.lives) == LIVES_MAX + 1


def test_what_others_write_into_the_topic_changes_nothing() -> None:
    found = Found()
    for key in (None, b"", b"\xff", b"7", b'["web"]', b'["web","m2"]', b'["web","m1","in"]', b'{"a":1}'):
        take_in(found, ME, key, b"{}", 5)
    assert found == Found()


def test_a_newer_format_is_not_passed_over() -> None:
    with pytest.raises(UnknownFormat):
        take_in(Found(), ME, b'["web","m1"]', b'{"format":2}', 0)


LAST, DOUBT, OTHER = Stamp("mine", 4), Stamp("mine", 5), Stamp("other", 0)


@pytest.mark.parametrize(
    ("found", "last", "doubt", "outcome"),
    [
        (DOUBT, LAST, DOUBT, Outcome.COMMITTED),
        (LAST, LAST, DOUBT, Outcome.ABORTED),
        (LAST, LAST, None, Outcome.ABORTED),
        (None, None, DOUBT, Outcome.ABORTED),
        (OTHER, LAST, DOUBT, Outcome.FENCED),
        (OTHER, None, DOUBT, Outcome.FENCED),
        (None, LAST, DOUBT, Outcome.VANISHED),
        (DOUBT, LAST, None, Outcome.FENCED),
    ],
)
def test_the_topic_is_the_witness(
    found: Stamp | None, last: Stamp | None, doubt: Stamp | None, outcome: Outcome
) -> None:
    assert judge(found, last, doubt) is outcome


@pytest.mark.parametrize(
    ("note", "stamped", "where"),
    [
        (None, True, Begins.TOPIC),
        (None, False, Begins.LOCAL),
        (Note(follows=True, proven=False), True, Begins.TOPIC),
        (Note(follows=True, proven=False), False, Begins.LOCAL),
        (Note(follows=True, proven=True), True, Begins.TOPIC),
        (Note(follows=True, proven=True), False, Begins.NOWHERE),
        (Note(follows=False, proven=False), True, Begins.LOCAL),
        (Note(follows=False, proven=False), False, Begins.LOCAL),
    ],
)
def test_where_an_agent_begins(note: Note | None, stamped: bool, where: Begins) -> None:
    assert begins(note, stamped=stamped) is where
    if note is not None:
        assert note_in([Row("other"), note.row()]) == note


def test_a_machine_is_known_by_a_digest_or_by_the_name_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, missing = tmp_path / "machine-id", tmp_path / "missing"
    there.write_text("3d1219c7c4c5404aaa1f6d2a48adfda4\n")
    monkeypatch.setattr(identity, "MACHINE_FILES", (missing, there))
    found = machine_of(None)
    assert len(found) == 16
    assert found not in there.read_text()
    assert machine_of("host-1") == "host-1"
    there.write_text("uninitialized\n")
    with pytest.raises(AgentError, match=r'machine_id = "\$\{HOSTNAME\}"'):
        machine_of(None)


@given(st.permutations(range(6)), st.integers(0, 6))
def test_what_is_staged_is_the_outlook_until_it_is_taken_back(order: list[int], staged: int) -> None:
    ledger = Ledger[str](0, "begin", lambda: None)
    spans = [ledger.begin((index + 1) * 10, f"mark {index}") for index in range(6)]
    for index in order:
        if index < staged:
            spans[index].stage()
    assert ledger.outlook[0] == staged * 10
    assert ledger.safe == 0
    for span in spans[:staged]:
        span.unstage()
    assert ledger.outlook == (0, "begin", True)
    for span in spans[:staged]:
        span.stage()
        span()
        assert not ledger.untold, "it went into the transaction already"
    assert ledger.safe == staged * 10


def test_a_spool_knows_in_its_next_life_what_it_has_sent() -> None:
    marks = SpoolMarks("one")
    sent, older, waits = marks.new(), marks.new(flight=7), marks.new()
    marks.stage(sent, in_order=True)
    assert marks.pending
    change = marks.take()
    change.committed()
    marks.committed(sent, in_order=True)
    assert not marks.pending
    next_life = SpoolMarks("two")
    next_life.learn(change.rows[0], {"one": 6})
    assert [next_life.arrived(mark) for mark in (sent, older, waits)] == [True, False, False]
    after_commit = SpoolMarks("two")
    after_commit.learn(change.rows[0], {"one": 7})
    assert [after_commit.arrived(mark) for mark in (sent, older, waits)] == [True, True, False]
    assert not next_life.arrived(None)


def test_what_was_in_flight_is_remembered_by_itself() -> None:
    """It was put on the disk behind what is newer, so that its number says nothing of others."""
    marks = SpoolMarks("one")
    newer, older = marks.new(), marks.new(flight=3)
    marks.committed(older, in_order=False)
    change = marks.take()
    next_life = SpoolMarks("two")
    next_life.learn(change.rows[0], {"one": 9})
    assert next_life.arrived(Mark(*older))
    assert not next_life.arrived(newer)


def test_an_aborted_transaction_has_sent_nothing() -> None:
    marks = SpoolMarks("one")
    marks.stage(marks.new(), in_order=True)
    marks.take()
    assert not marks.arrived(Mark("one", 1))
