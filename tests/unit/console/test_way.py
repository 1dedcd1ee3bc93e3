"""The way of a record in words: what it met, where it waits, and what is not known."""

from __future__ import annotations

from typing import Any

from penstock.console.following.letters import letter_topics
from penstock.console.following.way import (
    FoundBatch,
    FoundCommit,
    FoundGroup,
    FoundLetter,
    FoundRecord,
    Way,
    steps,
)

HEADERS = {"path": "/var/log/a.log", "host": "web-1", "offset": "120"}


def record(offset: int = 42, headers: dict[str, str] | None = None, *, there: bool = True) -> FoundRecord:
    return FoundRecord("logs", 3, offset, 10, 100, there, 1_000, headers or {})


def told(**found: Any) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["state"], each["text"]) for each in steps(Way(**{"record": record(), **found}))]


def test_a_line_of_a_file_is_where_it_begins() -> None:
    assert told(record=record(headers=HEADERS))[:2] == [
        ("file", "done", "a line of /var/log/a.log, byte 120 on web-1"),
        ("record", "done", "offset 42 of logs-3"),
    ]


def test_offsets_without_a_record_say_why() -> None:
    assert told(record=record(100, there=False)) == [
        ("record", "waiting", "logs-3 ends at offset 100: nothing was written at 100 yet")
    ]
    assert told(record=record(9, there=False))[0][1] == "unknown"
    assert "deleted" in told(record=record(9, there=False))[0][2]
    assert "compacted away" in told(record=record(50, there=False))[0][2]


def test_groups_that_wait_come_first_and_are_not_told_without_end() -> None:
    found = told(groups=[FoundGroup("past", 43), FoundGroup("late", 42), FoundGroup("later", 40)])[1:]
    assert found == [
        ("group", "waiting", "group late is at offset 42, with 0 records to read before it"),
        ("group", "waiting", "group later is at offset 40, with 2 records to read before it"),
        ("group", "done", "group past has read past it, up to offset 43"),
    ]
    many = told(groups=[FoundGroup(f"g{number}", 1) for number in range(30)])
    assert len(many) == 22
    assert many[-1] == ("group", "unknown", "and 10 groups more read this partition")


def test_a_batch_is_named_by_the_commit_of_its_query() -> None:
    batch = FoundBatch("orders", "lake", "q1", 60, "running")
    commit = FoundCommit("orders", 60, 7, batch=4, query_id="q1", row='{"a": 1}', sought=True)
    assert told(batches=[batch], commits=[commit])[1:] == [
        ("batch", "done", "batch 4 of lake of pipeline orders had it"),
        ("table", "done", 'it is a row since version 7 of table orders: {"a": 1}'),
    ]
    assert told(batches=[FoundBatch("orders", "lake", "q1", 42, "stopped")])[1] == (
        "batch", "waiting", "lake of pipeline orders is stopped, at offset 42: it has not had it yet",
    )  # fmt: skip


def test_a_table_says_what_it_knows() -> None:
    assert told(commits=[FoundCommit("t", 42)])[1][:2] == ("table", "waiting")
    assert "older than is remembered" in told(commits=[FoundCommit("t", 43)])[1][2]
    replaced = FoundCommit("t", 60, 7, replaced_by=9)
    assert "version 9 has replaced all rows" in told(commits=[replaced])[1][2]
    assert "2 dead letters among them" in told(commits=[FoundCommit("t", 60, 7, dead=2)])[1][2]


def test_a_letter_says_why_and_one_that_is_missing_where_it_was_looked_for() -> None:
    commit = FoundCommit("t", 60, 7, dead=1, sought=True)
    letter = FoundLetter("topic dead", "no JSON", "dead", 0, 5)
    assert told(commits=[commit], letters=[letter])[1:] == [
        ("table", "done", "version 7 of table t covers it, and has no row of it: it is a dead letter"),
        ("dead_letter", "done", "put aside in topic dead: no JSON"),
    ]
    assert told(commits=[commit], looked=["topic dead"])[-1] == (
        "dead_letter", "unknown", "not found among the dead letters of topic dead",
    )  # fmt: skip


def test_a_dead_letter_leads_back_to_its_record() -> None:
    own = {"penstock.topic": "orders", "penstock.partition": "1", "penstock.offset": "7", "penstock.error": "bad"}
    first = steps(Way(record(headers=own)))[0]
    assert (first["kind"], first["text"]) == ("dead_letter", "this is a dead letter of orders-1, offset 7: bad")
    assert first["params"] == {"topic": "orders", "partition": "1", "offset": "7"}


def test_letters_are_looked_for_where_somebody_says_they_are() -> None:
    visible = ["orders", "orders-dead", "my-dlq", "letters", "x-dead", "aside"]
    assert letter_topics(visible, ["aside", "hidden"]) == ["aside", "letters", "my-dlq"]
