"""Pages beside the brokers' own: tables with SQL and audit, pipelines, as whoever reaches a console without logins."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from penstock.blocking import Admin, Producer
from penstock.console.settings import WarehouseAddress
from penstock.model.ids import TopicPartition
from penstock.spark.values.dead_letters import headers_of
from penstock.spark.values.letter_table import LetterTable
from penstock.spark.values.letters import DeadLetter, Reader
from penstock.testing import EmbeddedBroker
from tests.console.lakes import commit, pipeline_told, table_of, topic_id
from tests.console.running import RunningConsole, running, settings_for
from tests.patience import wait_for, within

RECORDS = 100


@pytest.fixture(scope="module")
def warehouse(node: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table `orders` has offsets 0 to 59 of its topic; two of them became dead letters."""
    folder = tmp_path_factory.mktemp("lake")
    with Admin(**node.client_settings) as admin, Producer(**node.client_settings) as producer:
        admin.create_topic("orders", 1, 1)
        for number in range(RECORDS):
            producer.send("orders", f"order {number}", partition=0)
        producer.flush()
        orders = topic_id(admin, "orders")
        admin.alter_group_offsets("spark-orders-lake", {TopicPartition("orders", 0): 60})
        store = table_of(folder, "orders", "orders")
        commit(store, "orders", orders, 0, 20, batch=0)
        store.refresh()
        commit(store, "orders", orders, 20, 60, batch=1, dead=(25, 26))
        foreign = table_of(folder, "foreign", "orders", feed=False, table_format="iceberg")
        commit(foreign, "orders", orders, 0, 5, batch=0, query_id="another")
    pipeline_told(node.client_settings, "orders", "orders", offset=60, end=80)
    pipeline_told(node.client_settings, "broken", "orders", offset=10, end=80, state="failed", error="it burst",
                  query_id="nobody")  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, warehouse: Path) -> Iterator[RunningConsole]:
    settings = settings_for(node.client_settings, warehouses=(WarehouseAddress(str(warehouse)),))
    with running(settings) as found:
        found.wait("topics/orders", lambda told: told["records"] == str(RECORDS))
        found.wait("groups", lambda told: told["items"])
        yield found


def test_tables_are_told_with_their_figures(console: RunningConsole, warehouse: Path) -> None:
    told = console.wait("tables", lambda told: len(told["items"]) == 2)
    row = next(row for row in told["items"] if row["name"] == "orders")
    assert (row["kind"], row["version"], row["rows"], row["files"], row["feeds_from"], row["dead"]) == (
        "delta", "2", "58", 2, ["orders"], "2",
    )  # fmt: skip
    assert told["command"] == f"penstock lake tables --warehouse {warehouse}"
    page = console.get("tables/orders")
    assert [(each["version"], each["operation"], each["rows"]) for each in page["versions"]] == [
        ("2", "append", "38"), ("1", "append", "20"), ("0", "other", None),
    ]  # fmt: skip
    assert page["ranges"] == [{"topic": "orders", "partition": 0, "start": "0", "end": "60", "lag": "40"}]
    assert page["pipelines"] == ["orders"]
    assert console.refusal("tables/nothing") == (404, "unknown_table")


def test_a_table_that_grows_is_seen_to(console: RunningConsole, warehouse: Path, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        found = topic_id(admin, "orders")
        store = table_of(warehouse, "growing", "orders")
        console.wait("tables/growing", lambda told: told["version"] == "0")
        commit(store, "orders", found, 0, 7, batch=0, query_id="grows")
    told = console.wait("tables/growing", lambda told: told["version"] == "1")
    assert (told["rows"], told["ranges"][0]["end"]) == ("7", "7")


def test_an_audit_is_a_verdict(console: RunningConsole, warehouse: Path) -> None:
    told = console.send("POST", "tables/orders/audit")
    assert told["done"]["sound"], told
    assert (told["done"]["rows"], told["done"]["offsets"], told["done"]["dead"]) == ("58", "60", "2")
    assert told["command"] == f"penstock lake audit --warehouse {warehouse} orders"


def test_an_audit_finds_what_is_missing(console: RunningConsole, warehouse: Path, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        found = topic_id(admin, "orders")
    store = table_of(warehouse, "holed", "orders")
    commit(store, "orders", found, 0, 7, batch=0, query_id="holes")
    next(Path(warehouse / "holed").glob("*.parquet")).unlink()
    told = console.wait("tables/holed", lambda told: told["version"] == "1")
    done = console.send("POST", "tables/holed/audit")["done"]
    assert not done["sound"]
    assert any("error" in line for line in done["findings"]), told


def test_sql_has_all_digits(console: RunningConsole) -> None:
    told = console.send(
        "POST", "sql", {"query": 'SELECT max(number) n, count(*) c, 0.10::DECIMAL(9,2) d FROM "orders"'}
    )
    assert told["rows"] == [[str(59 + (1 << 60)), "58", "0.10"]]
    assert [column["name"] for column in told["columns"]] == ["n", "c", "d"]
    assert told["command"].startswith("penstock lake query --warehouse ")
    assert not told["cut"]


def test_sql_is_cut_at_ten_thousand_rows(console: RunningConsole) -> None:
    told = console.send("POST", "sql", {"query": "SELECT a.number FROM orders a, orders b, orders c"})
    assert (len(told["rows"]), told["cut"]) == (10_000, True)


def test_sql_that_is_none_is_refused_in_words(console: RunningConsole) -> None:
    for query in ("SELEKT 1", "SELECT * FROM nothing", ""):
        status, code = console.refusal("sql", "POST", {"query": query})
        assert (status, code in ("sql_refused", "bad_request")) == (400, True), query


def test_a_question_ends_with_whoever_asked(console: RunningConsole) -> None:
    """Two are answered at once and no more; one that nobody waits for any more makes room at once."""
    one = {"query": "SELECT 1"}
    held = [_asked_for_ever(console) for _ in range(2)]
    assert console.refusal("sql", "POST", one) == (429, "too_many")
    for each in held:
        each.close()
    wait_for("room", lambda: console.client.post("api/v1/sql", json=one).status_code == 200, timeout_s=10)


def _asked_for_ever(console: RunningConsole) -> socket.socket:
    """A connection on which a question waits for its answer, which would take until it is killed."""
    query = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
    body = json.dumps({"query": query}).encode()
    at = httpx.URL(console.address)
    head = (
        f"POST /api/v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    link = socket.create_connection((at.host, at.port or 0), timeout=within(30))
    link.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    assert select.select([link], [], [], 0.5)[0] == [], link.recv(1_000)
    return link


def test_pipelines_are_told_with_their_figures(console: RunningConsole) -> None:
    told = console.get("pipelines")
    by_name = {row["name"]: row for row in told["items"]}
    orders, broken = by_name["orders"], by_name["broken"]
    assert (orders["state"], orders["rows_per_s"], orders["lag"], orders["batch_ms"], orders["dead"]) == (
        "running", 12.5, "40", 800, "2",
    )  # fmt: skip
    assert (broken["state"], broken["last_error"], broken["lag"], broken["dead"]) == ("failed", "it burst", "90", None)


def test_a_pipeline_has_ends_batches_and_commands(console: RunningConsole) -> None:
    page = console.get("pipelines/orders")
    assert [(end["topic"], end["lag"]) for end in page["sources"]] == [("orders", "40")]
    assert [(end["table"], end["committed"], end["batch"]) for end in page["sinks"]] == [("orders", "2", "1")]
    assert [(each["id"], each["flow"], each["rows"], each["parts"]["addBatch"]) for each in page["batches"]] == [
        ("3", "lake", "40", 500)
    ]
    assert (page["state_rows"], page["watermark"]) == ("7", "2026-01-01T00:00:00.000Z")
    assert page["commands"]["start"] == "penstock pipeline run --detach /srv/orders.toml"
    assert page["acts"] == ["stop"]
    assert console.refusal("pipelines/nobody") == (404, "unknown_pipeline")


def test_a_pipeline_is_asked_to_stop(console: RunningConsole, node: EmbeddedBroker) -> None:
    pipeline_told(node.client_settings, "stops", "orders", offset=60, end=80, query_id="stops")
    console.wait("pipelines/stops", lambda told: told["state"] == "running")
    plan = console.send("POST", "pipelines/stops/stop", {"dry_run": True})
    assert plan["command"] == "penstock pipeline stop stops"
    assert console.get("pipelines/stops")["wanted"] is None
    console.send("POST", "pipelines/stops/stop")
    console.wait("pipelines/stops", lambda told: told["wanted"] == "stop")
    assert console.refusal("pipelines/stops/start", "POST", {}) == (409, "conflict")
    events = console.wait("log", lambda told: any(each["kind"] == "changed" for each in told["items"]))
    assert any("pipeline stops was asked to stop" in each["text"] for each in events["items"])


def test_the_overview_has_tables(console: RunningConsole) -> None:
    told = console.get("overview")
    assert "orders" in [row["name"] for row in told["tables"]]


def test_a_record_is_followed_into_its_row(console: RunningConsole) -> None:
    told = console.get("follow", topic="orders", partition=0, offset=10)
    kinds = [(step["kind"], step["state"]) for step in told["steps"]]
    assert kinds[0] == ("record", "done")
    assert ("group", "done") in kinds
    batch = next(step for step in told["steps"] if step["params"].get("pipeline") == "orders")
    assert batch["text"] == "batch 0 of lake of pipeline orders had it"
    row = next(step for step in told["steps"] if step["params"].get("table") == "orders")
    assert row["params"]["version"] == "1"
    assert "secret of orders 10" in row["text"]
    assert told["command"] == "penstock consume -p 0 --offset=10 -n 1 orders"


def test_a_record_that_became_no_row_is_followed_to_its_letters(console: RunningConsole, node: EmbeddedBroker) -> None:
    """One is in a topic of dead letters, one in a table of them, which nobody could ask for as a table."""
    letter = DeadLetter("orders", 0, 25, None, None, b"x", (), "25 is no number")
    with Producer(**node.client_settings) as producer:
        for number in range(50):
            producer.send("orders-dead", b"x", headers=headers_of(replace(letter, offset=number + 1_000)))
        producer.send("orders-dead", b"x", headers=headers_of(letter))
    console.wait("topics", lambda told: "orders-dead" in [row["name"] for row in told["items"]])
    told = console.get("follow", topic="orders", partition=0, offset=25)
    found = [step for step in told["steps"] if step["kind"] == "dead_letter"]
    assert [(step["state"], step["text"]) for step in found] == [
        ("done", "put aside in topic orders-dead: 25 is no number")
    ]
    assert found[0]["params"]["topic"] == "orders-dead"
    # From the letter one comes back to its record.
    place = found[0]["params"]
    back = console.get("follow", topic="orders-dead", partition=place["partition"], offset=place["offset"])
    assert back["steps"][0]["params"] == {"topic": "orders", "partition": "0", "offset": "25"}


def test_a_letter_in_a_table_is_found(console: RunningConsole, warehouse: Path) -> None:
    letter = DeadLetter("orders", 0, 26, None, None, b"x", (), "26 is no number")
    LetterTable(str(warehouse / "put_aside")).append([letter], Reader("orders-lake", 1), datetime.now(UTC))
    console.wait("tables/put_aside", lambda told: told["rows"] == "1")
    told = console.get("follow", topic="orders", partition=0, offset=26)
    assert "put aside in table put_aside: 26 is no number" in [step["text"] for step in told["steps"]]


def test_a_record_that_is_not_there_yet_waits(console: RunningConsole) -> None:
    told = console.get("follow", topic="orders", partition=0, offset=80)
    states = {step["kind"]: step["state"] for step in told["steps"]}
    assert (states["record"], states["group"], states["batch"], states["table"]) == (
        "done",
        "waiting",
        "waiting",
        "waiting",
    )
    told = console.get("follow", topic="orders", partition=0, offset=5_000)
    assert told["steps"][0]["state"] == "waiting"
    assert console.refusal("follow", topic="orders", partition=7, offset=0)[0] == 404
    assert console.refusal("follow", topic="orders") == (400, "bad_request")


def test_a_console_says_what_it_can(console: RunningConsole) -> None:
    assert console.get("session")["features"] == {"sql": True}
