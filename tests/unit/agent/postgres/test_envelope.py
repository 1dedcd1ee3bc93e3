"""Changes as Debezium's events; whoever keeps the last record of each key has the table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.postgres.log.changes import Kind, LoggedTransaction, RowChange
from penstock.agent.inputs.postgres.log.wire import UNCHANGED, Relation, RelationColumn, TypeName, Values
from penstock.agent.inputs.postgres.records.envelope import Envelopes, RowEvent, TableShape
from penstock.agent.inputs.postgres.records.values import UNAVAILABLE

COLUMNS = (
    RelationColumn("id", 23, -1, True),
    RelationColumn("email", 25, -1, False),
    RelationColumn("body", 25, -1, False),
)
TABLE = Relation(7, "public", "customers", "d", COLUMNS)
FULL = Relation(7, "public", "customers", "f", tuple(replace(column, identity=True) for column in COLUMNS))
ENVELOPES = Envelopes("shop", "store", now_ms=lambda: 1_234)
TRANSACTION = LoggedTransaction(0x90, 5_000_000, 77)


def change(kind: Kind, new: Values = (), old: Values | None = None, *, whole: bool = False) -> RowChange:
    return RowChange(kind, FULL if whole else TABLE, TRANSACTION, 0x80, 1, new, old, whole)


def events(given: RowChange) -> list[RowEvent]:
    return list(ENVELOPES.of_change(given, TableShape.of(given.relation, {}, ("id",))))


def test_an_insert_says_all_that_debezium_says_of_it() -> None:
    (event,) = events(change("insert", ("1", "ann@x", None)))
    assert (event.key, event.time_ms, event.tombstone) == (b'{"id":1}', 5_000, False)
    assert event.fields.pop("source") | {"version": ""} == {
        "version": "",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 5_000,
        "snapshot": "false",
        "db": "store",
        "schema": "public",
        "table": "customers",
        "txId": 77,
        "lsn": 0x80,
        "sequence": '["144","128"]',
    }
    assert event.fields == {
        "before": None,
        "after": {"id": 1, "email": "ann@x", "body": None},
        "op": "c",
        "ts_ms": 1_234,
    }


def told(given: RowChange) -> list[tuple[Any, ...]]:
    return [
        (event.key, "tombstone") if event.tombstone else (event.key, *map(event.fields.get, ("op", "before", "after")))
        for event in events(given)
    ]


def test_an_update_of_a_table_with_a_key_knows_nothing_of_before() -> None:
    after = {"id": 1, "email": "b", "body": UNAVAILABLE}
    assert told(change("update", ("1", "b", UNCHANGED))) == [(b'{"id":1}', "u", None, after)]


def test_an_update_with_full_identity_has_the_row_before_and_what_did_not_change() -> None:
    found = told(change("update", ("1", "b", UNCHANGED), ("1", "a", "long"), whole=True))
    before, after = {"id": 1, "email": "a", "body": "long"}, {"id": 1, "email": "b", "body": "long"}
    assert found == [(b'{"id":1}', "u", before, after)]


def test_a_row_with_another_key_is_deleted_and_created() -> None:
    assert told(change("update", ("2", "a", UNCHANGED), ("1", None, None))) == [
        (b'{"id":1}', "d", {"id": 1, "email": None, "body": None}, None),
        (b'{"id":1}', "tombstone"),
        (b'{"id":2}', "c", None, {"id": 2, "email": "a", "body": UNAVAILABLE}),
    ]


def test_a_delete_is_followed_by_its_tombstone_unless_nobody_wants_it() -> None:
    gone = change("delete", (), ("1", None, None))
    before = {"id": 1, "email": None, "body": None}
    assert told(gone) == [(b'{"id":1}', "d", before, None), (b'{"id":1}', "tombstone")]
    plain = replace(ENVELOPES, tombstones=False)
    assert [event.tombstone for event in plain.of_change(gone, TableShape.of(TABLE, {}))] == [False]


def test_a_delete_in_a_table_without_a_key_has_no_tombstone() -> None:
    gone = change("delete", (), ("1", "a", "b"), whole=True)
    found = list(ENVELOPES.of_change(gone, TableShape.of(FULL, {}, ())))
    assert [(event.key, event.fields["op"]) for event in found] == [(None, "d")]


def test_a_truncation_has_neither_key_nor_rows() -> None:
    assert told(change("truncate")) == [(None, "t", None, None)]


def test_a_row_of_the_beginning_is_read_and_stands_where_the_log_begins() -> None:
    event = ENVELOPES.of_row(TableShape.of(TABLE, {}), ("1", "a", None), 0x60, 9_000)
    source = event.fields["source"]
    assert (event.fields["op"], source["snapshot"], source["lsn"], source["ts_ms"]) == ("r", "true", 0x60, 9_000)
    assert event.key == b'{"id":1}'


def test_a_type_that_the_log_names_is_converted_by_its_name() -> None:
    table = Relation(7, "public", "t", "d", (RelationColumn("id", 70_000, -1, True),))

    def key(schema: str, name: str, value: str) -> bytes | None:
        return TableShape.of(table, {70_000: TypeName(70_000, schema, name)}).key((value,))

    assert key("pg_catalog", "int4", "5") == b'{"id":5}', "a domain"
    assert key("public", "int4", "5") == b'{"id":"5"}', "somebody's own, which only has the name"
    assert key("public", "_mood", "{sad,glad}") == b'{"id":["sad","glad"]}'
    assert TableShape.of(table, {}).key(("5",)) == b'{"id":"5"}'


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "drop", "move"]), st.integers(0, 3), st.integers(0, 3), st.text(max_size=3)),
    max_size=20,
)


@given(STEPS, st.booleans())
def test_the_last_record_of_each_key_is_the_table(steps: list[tuple[str, int, int, str]], whole: bool) -> None:
    table: dict[int, str] = {}
    last: dict[bytes | None, dict[str, Any] | None] = {}

    def send(given: RowChange) -> None:
        for event in events(given):
            last[event.key] = None if event.tombstone else event.fields["after"]

    def old(id: int) -> Values:
        return (str(id), table[id], None) if whole else (str(id), None, None)

    for step, id, other, text in steps:
        if step == "put" and id in table:
            send(change("update", (str(id), text, None), old(id) if whole else None, whole=whole))
            table[id] = text
        elif step == "put":
            send(change("insert", (str(id), text, None), whole=whole))
            table[id] = text
        elif step == "drop" and id in table:
            send(change("delete", (), old(id), whole=whole))
            del table[id]
        elif step == "move" and id in table and other not in table:
            send(change("update", (str(other), table[id], None), old(id), whole=whole))
            table[other] = table.pop(id)
    kept = {json.loads(key or b"null")["id"]: row["email"] for key, row in last.items() if row is not None}
    assert kept == table
