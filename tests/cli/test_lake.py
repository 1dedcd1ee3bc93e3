"""`penstock lake …`: what it prints and its exit codes, on tables of both formats."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.blocking import Producer
from penstock.cli.main import main
from penstock.spark.lake.landing import write_down
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import BatchCommit
from tests.cli.command import Said, penstock
from tests.cli.lakes import make_lake
from tests.unit.spark.lake.foreign import log_entry, protocol
from tests.unit.spark.lake.tables import made, rows, written

Lake = Callable[..., Said]


@pytest.fixture
def lake(capfd: pytest.CaptureFixture[str]) -> Lake:
    """lake(warehouse, *arguments): in this process, because a new one takes seconds to load the formats' libraries."""

    def run(where: Path, *arguments: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(["lake", *arguments, "--warehouse", str(where)])
        out, err = capfd.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that no test changes."""
    return make_lake(tmp_path_factory.mktemp("kept") / "lake")


def test_tables_are_listed(lake: Lake, kept: Path) -> None:
    data = lake(kept, "tables", "--format", "json").data
    assert [(d["name"], d["format"], d["rows"], d["files"]) for d in data] == [
        ("orders", "delta", 15, 3),
        ("visits", "iceberg", 15, 3),
    ]
    heading, first, _ = lake(kept, "tables").out.splitlines()
    assert heading.split() == ["TABLE", "FORMAT", "ROWS", "FILES", "SIZE", "VERSION", "CHANGED"]
    assert first.split()[:4] == ["orders", "delta", "15", "3"]


def test_a_broken_table_does_not_hide_the_others(lake: Lake, tmp_path: Path) -> None:
    where = make_lake(tmp_path)
    for metadata in (where / "visits" / "metadata").glob("*.metadata.json"):
        metadata.unlink()
    said = lake(where, "tables")
    assert said.code == 0
    assert "orders" in said.out
    assert "visits cannot be read" in said.err


def test_a_warehouse_without_tables_is_no_error(lake: Lake, tmp_path: Path) -> None:
    said = lake(tmp_path, "tables")
    assert (said.code, said.out) == (0, "")
    assert "no tables in" in said.err


@pytest.mark.parametrize("name", ["orders", "visits"])
def test_a_table_is_shown_with_its_columns_and_positions(lake: Lake, kept: Path, name: str) -> None:
    data = lake(kept, "show", name, "--format", "json").data
    assert [column["name"] for column in data["columns"]] == ["n", "word", "at", "country"]
    (position,) = data["positions"]
    assert (position["topic"], position["partition"], position["offset"]) == ("clicks", 0, 15)
    text = lake(kept, "show", str(kept / name)).out
    assert "rows          15 in 3 files" in text
    assert text.splitlines()[-1].split() == ["clicks", "0", "15"]


def test_sql_is_answered_as_text_json_and_csv(lake: Lake, kept: Path) -> None:
    sql = "select o.n, v.word, o.at from orders o join visits v using (n) where n < 2 order by n"
    assert lake(kept, "query", sql, "--format", "json").data == [
        {"n": 0, "word": "w0", "at": "2026-01-01T12:00:00+00:00"},
        {"n": 1, "word": "w1", "at": "2026-01-01T12:00:01+00:00"},
    ]
    assert lake(kept, "query", "select count(*) c from orders", "--format", "csv").out == "c\n15\n"
    assert lake(kept, "query", "select n, 'a\nb' t, {'x': 1} s, null e from visits where n = 3").out.splitlines() == [
        "n  t     s         e",
        '3  a\\nb  {"x": 1}  -',
    ]
    cut = lake(kept, "query", "select n from orders order by n", "--limit", "2", "--format", "csv")
    assert cut.out == "n\n0\n1\n"
    assert "there are more than 2 rows" in cut.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "oders"), 3, "penstock: there is no table oders"),
        (("query", "select * from visit"), 3, "did you mean visits?"),
        (("query", "select * form orders"), 1, "LINE 1: select * form orders"),
        (("query", "drop table orders"), 1, "DROP is refused"),
        (("query", "select 1", "--master", "local"), 2, "--master goes with --engine spark"),
        (("compact", "orders", "--target-bytes", "tiny"), 2, "is not a size such as 64m"),
        (("compact", "orders", "--expire-older-than", "never"), 2, "is not a time such as"),
        (("compact", "orders", "--sweep-older-than", "1h"), 2, "may belong to a task"),
        (("tables", "--catalog", "nonsense"), 2, "option catalog is 'nonsense'"),
    ],
)
def test_what_is_wrong_is_said_with_its_exit_code(
    lake: Lake, kept: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found = lake(kept, *arguments)
    assert (found.code, found.out) == (code, "")
    assert said in found.err


def test_snapshots_are_listed_newest_last(lake: Lake, kept: Path) -> None:
    data = lake(kept, "snapshots", "visits", "--format", "json").data
    assert [(d["version"], d["kind"], d["batch"], d["rows"]) for d in data] == [
        (1, "append", 0, 5),
        (2, "append", 1, 5),
        (3, "append", 2, 5),
    ]
    newest = lake(kept, "snapshots", "orders", "--limit", "1").out.splitlines()[-1]
    assert "clicks-0 [10, 15)" in newest


def test_compaction_and_expiry_leave_the_rows_and_the_proof(lake: Lake, tmp_path: Path) -> None:
    where = make_lake(tmp_path)
    said = lake(where, "compact", "orders", "visits", "--expire-older-than", "0s", "--format", "json")
    assert said.code == 0, said.err
    assert [(d["table"], d["files_removed"], d["files_added"]) for d in said.data] == [
        ("orders", 3, 1),
        ("visits", 3, 1),
    ]
    assert said.data[1]["snapshots_expired"] == 3
    for table in ("orders", "visits"):
        counted = lake(where, "query", f"select count(*) c, sum(n) s from {table}", "--format", "csv")
        assert counted.out == "c,s\n15,105\n"
    forgotten = lake(where, "snapshots", "visits", "--ledger", "--format", "json").data
    assert [(d["version"], d["kept"]) for d in forgotten] == [(1, False), (2, False), (3, False), (4, True)]
    audited = lake(where, "audit")
    assert audited.code == 0, audited.out
    assert audited.out.count(": clean") == 2


def test_an_audit_that_finds_something_ends_with_10(lake: Lake, tmp_path: Path) -> None:
    where = make_lake(tmp_path)
    entry = max((where / "orders" / "_penstock" / "ledger").glob("*.json"))
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "rows": 6}))
    said = lake(where, "audit", "orders")
    assert said.code == 10
    assert "NOT CLEAN" in said.out
    assert "what to do:" in said.out
    (found,) = lake(where, "audit", "orders", "--format", "json").data
    assert (found["clean"], found["table"], found["findings"][0]["check"]) == (False, "orders", "ledger")
    assert lake(where, "audit", "visits").code == 0


def test_an_audit_asks_the_topic_what_a_commit_does_not_explain(lake: Lake, tmp_path: Path, bootstrap: str) -> None:
    topic = "audited"
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send_batch(topic, [b"1", b"2", b"3"], partition=0)
        producer.begin()
        producer.send(topic, b"aborted", partition=0).result()
        producer.abort()
    store = made(tmp_path / "orders", "delta")
    store.set_properties({"penstock.rows": "record"})
    store.refresh()
    # Three records and a marker, an aborted one and its marker: no report of these reached the commit.
    ranges = (TableRange(topic, "", 0, 0, 6),)
    write_down(store, store.commit(BatchCommit("q", 0, ranges, (written(store, rows(0, 3)),), rows=3)))
    silent = lake(tmp_path, "audit", "orders")
    assert (silent.code, "-b says where" in silent.out) == (10, True)
    told = lake(tmp_path, "audit", "orders", "-b", bootstrap)
    assert (told.code, "the topic has 3 records there, and each is a row" in told.out) == (0, True), told


def test_a_table_that_cannot_be_audited_is_named_and_the_others_are_proven(lake: Lake, tmp_path: Path) -> None:
    where = make_lake(tmp_path)
    log_entry(where / "orders", protocol("deletionVectors"))
    said = lake(where, "audit")
    assert said.code == 10
    assert "orders cannot be audited: " in said.err
    assert "the Delta feature deletionVectors" in said.err
    assert said.out.count(": clean") == 1


@pytest.mark.parametrize(
    ("library", "extra", "arguments"),
    [
        ("duckdb", "spark", ("query", "select 1")),
        ("deltalake", "spark", ("show", "orders")),
        ("pyiceberg", "iceberg", ("tables",)),
    ],
)
def test_a_library_that_is_not_installed_is_one_sentence(
    lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch, library: str, extra: str, arguments: tuple[str, ...]
) -> None:
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] == library or loaded.startswith(("penstock.spark.lake.delta", "pyiceberg")):
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    said = lake(kept, *arguments)
    assert (said.code, said.out) == (1, "")
    assert f"{extra}]'" in said.err
    assert len(said.err.splitlines()) == 1


def test_the_command_itself_runs_with_its_environment(kept: Path) -> None:
    said = penstock("lake", "tables", "--format", "json", environment={"PENSTOCK_WAREHOUSE": str(kept)})
    assert [each["name"] for each in said.data] == ["orders", "visits"]
