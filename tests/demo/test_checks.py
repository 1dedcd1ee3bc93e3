"""Whatever is wrong with what arrived, a check says so, and no check says so that has nothing to do with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.blocking import Producer
from penstock.demo.checks import Verdict, judge
from penstock.demo.evidence import Arrival, Evidence
from penstock.demo.gathering import read_all, shown_by
from penstock.testing import broker

LINES, PARTITIONS = 300, 3
BROKEN = frozenset(range(7, LINES, 50))
LOST = 100
"""A line that is not broken."""


def minute_of(line: int) -> str:
    return f"2026-11-01T00:{line // 10:02d}"


def arrival(line: int) -> Arrival:
    return Arrival(line % PARTITIONS, line // PARTITIONS, line)


def sums(rows: list[Arrival]) -> dict[str, int]:
    return dict(Counter(minute_of(each.line) for each in rows))


def whole() -> Evidence:
    """Nothing is wrong."""
    rows = [arrival(line) for line in range(LINES) if line not in BROKEN]
    return Evidence(
        written=LINES,
        broken=BROKEN,
        topic=dict.fromkeys(range(PARTITIONS), (0, LINES // PARTITIONS)),
        rows=rows,
        letters=[arrival(line) for line in sorted(BROKEN)],
        minutes_in_table=sums(rows),
        minutes_in_topic=sums(rows),
        audit_words="clean",
        shipped=range(LINES),
        sums_words="clean",
    )


def with_rows(found: Evidence, rows: list[Arrival]) -> Evidence:
    """The sums follow the rows, as the table's own do."""
    return replace(found, rows=rows, minutes_in_table=sums(rows))


def lost_before_the_topic(found: Evidence) -> Evidence:
    """The line was counted and never shipped; what came after it has its place."""
    rows = [each for each in found.rows if each.line != LOST]
    moved = [
        each._replace(offset=each.offset - 1) if each.partition == 1 and each.line > LOST else each for each in rows
    ]
    letters = [
        each._replace(offset=each.offset - 1) if each.partition == 1 and each.line > LOST else each
        for each in found.letters
    ]
    topic = {**found.topic, 1: (0, LINES // PARTITIONS - 1)}
    shipped = [line for line in range(LINES) if line != LOST]
    return replace(with_rows(found, moved), topic=topic, letters=letters, minutes_in_topic=sums(moved), shipped=shipped)


def lost_after_the_topic(found: Evidence) -> Evidence:
    """A batch skipped it."""
    rows = [each for each in found.rows if each.line != LOST]
    return replace(with_rows(found, rows), minutes_in_topic=sums(rows))


def sent_twice(found: Evidence) -> Evidence:
    """The same line under two offsets."""
    rows = [*found.rows, Arrival(0, LINES // PARTITIONS, LOST)]
    topic = {**found.topic, 0: (0, LINES // PARTITIONS + 1)}
    shipped = [*range(LINES), LOST]
    return replace(with_rows(found, rows), topic=topic, minutes_in_topic=sums(rows), shipped=shipped)


def committed_twice(found: Evidence) -> Evidence:
    """The same offset in two rows."""
    rows = [*found.rows, arrival(LOST)]
    return replace(with_rows(found, rows), minutes_in_topic=sums(rows))


def row_and_letter(found: Evidence) -> Evidence:
    """A line that was decoded by one and not by another."""
    return replace(found, letters=[*found.letters, arrival(LOST)], broken=found.broken | {LOST})


def innocent_letter(found: Evidence) -> Evidence:
    rows = [each for each in found.rows if each.line != LOST]
    letters = [*found.letters, arrival(LOST)]
    return replace(with_rows(found, rows), letters=letters, minutes_in_topic=sums(rows))


def foreign_line(found: Evidence) -> Evidence:
    rows = [each._replace(line=LINES + 5) if each.line == LOST else each for each in found.rows]
    return replace(with_rows(found, rows), minutes_in_topic=sums(rows))


def audit_fails(found: Evidence) -> Evidence:
    return replace(found, audit_clean=False, audit_words="not clean: range 3 is missing")


def sums_in_no_decision(found: Evidence) -> Evidence:
    return replace(found, sums_clean=False, sums_words="not clean: 3 rows that no decision lists")


def sums_too_small(found: Evidence) -> Evidence:
    return replace(found, minutes_in_topic={**found.minutes_in_topic, minute_of(LOST): 1})


def minute_is_missing(found: Evidence) -> Evidence:
    kept = {minute: count for minute, count in found.minutes_in_topic.items() if minute != minute_of(LOST)}
    return replace(found, minutes_in_topic=kept)


def aborted_row(found: Evidence) -> Evidence:
    """The topic holds no committed record where a row comes from."""
    return replace(found, absent=frozenset({arrival(LOST)[:2]}))


def failed(found: Evidence) -> dict[str, str]:
    return {each.name: each.words for each in judge(found) if not each.good}


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        (lost_before_the_topic, {"lines", "missing", "once"}),
        (lost_after_the_topic, {"lines", "missing", "gaps"}),
        (sent_twice, {"lines", "once", "duplicates"}),
        (committed_twice, {"duplicates"}),
        (row_and_letter, {"lines", "duplicates", "dead letters"}),
        (innocent_letter, {"dead letters"}),
        (foreign_line, {"missing"}),
        (aborted_row, {"gaps"}),
        (audit_fails, {"audit"}),
        (sums_in_no_decision, {"audited sums"}),
        (sums_too_small, {"aggregates"}),
        (minute_is_missing, {"aggregates"}),
    ],
)
def test_every_fault_fails_its_checks_and_no_others(fault: Callable[[Evidence], Evidence], names: set[str]) -> None:
    assert set(failed(fault(whole()))) == names


def test_nothing_fails_when_nothing_is_wrong() -> None:
    assert failed(whole()) == {}
    assert judge(whole())[0] == Verdict("lines", "300 written = 294 rows + 6 dead letters", True)


def test_offsets_of_markers_and_of_what_was_aborted_are_no_gaps() -> None:
    found = whole()
    end = LINES // PARTITIONS
    longer = replace(found, topic={**found.topic, 2: (0, end + 2)}, absent=frozenset({(2, end), (2, end + 1)}))
    assert failed(longer) == {}
    gaps = next(each for each in judge(longer) if each.name == "gaps")
    assert gaps.words == "0 in 302 offsets of 3 partitions, 2 of them without a record"
    assert set(failed(replace(longer, absent=frozenset()))) == {"gaps"}


def test_a_topic_tells_which_of_its_offsets_hold_no_record() -> None:
    with broker() as node, Producer(bootstrap_servers=node.bootstrap_servers, transactional_id="demo") as producer:
        with producer.transaction():
            producer.send("lines", b"GET / 4711 0", partition=0)
        producer.begin()
        producer.send("lines", b"GET / 4712 0", partition=0).result()
        producer.abort()
        reach = {"bootstrap_servers": node.bootstrap_servers}
        found = asyncio.run(shown_by(reach, "lines", {0: (0, 4)}))
        assert found == (frozenset({(0, 1), (0, 2), (0, 3)}), [4711])
        assert [each.value for each in asyncio.run(read_all(reach, "lines"))] == [b"GET / 4711 0"]


def test_a_dead_letter_that_a_crash_sent_twice_counts_once() -> None:
    found = whole()
    assert failed(replace(found, letters=[*found.letters, *found.letters])) == {}


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        (lost_before_the_topic, "missing", "written, and nowhere: line 100"),
        (lost_after_the_topic, "gaps", "in the topic, and neither row nor dead letter: offset 1:33"),
        (aborted_row, "gaps", "no record of the topic, and yet there: offset 1:33"),
        (sent_twice, "duplicates", "in the table more than once: line 100"),
        (committed_twice, "duplicates", "in the table more than once: offset 1:33"),
        (lost_before_the_topic, "once", "written, and not in the topic: line 100"),
        (sent_twice, "once", "in the topic more than once: line 100"),
        (sums_too_small, "aggregates", "minute 2026-11-01T00:10: 9 rows in the table, 1 by the topic"),
    ],
)
def test_a_failed_check_names_what_is_wrong(fault: Callable[[Evidence], Evidence], name: str, words: str) -> None:
    assert failed(fault(whole()))[name] == words


def test_many_wrong_things_are_counted_and_the_first_are_named() -> None:
    found = whole()
    few = [each for each in found.rows if each.line > 20]
    assert failed(with_rows(found, few))["missing"] == "written, and nowhere: 20 lines (0, 1, 2, …)"
