"""Tables, SQL and pipelines are seen, and pipelines stopped, by whom the cluster's rules let, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.blocking import Admin, Producer
from penstock.client.admin import Acl, AclFilter
from penstock.client.admin.scram_users import ScramPassword
from penstock.console.settings import WarehouseAddress
from penstock.testing import EmbeddedBroker, broker
from tests.console.lakes import commit, pipeline_told, table_of, topic_id
from tests.console.running import RunningConsole, running, settings_for
from tests.console.test_people import PASSWORD, logged_in
from tests.patience import wait_for

PEOPLE = ("anna", "ben", "cora", "olga")
"""Anna and Ben may read their own topic; Cora may describe Anna's and not read it; Olga may alter the cluster."""


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found:
        yield found


@pytest.fixture(scope="module")
def admin(node: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(**node.client_settings) as found:
        found.alter_scram_users([ScramPassword(name, PASSWORD) for name in PEOPLE]).checked()
        for name in ("anna", "ben"):
            found.create_topic(f"{name}-orders", 1, 1)
            found.create_acls([Acl(f"User:{name}", "read", "topic", f"{name}-orders")]).checked()
        rules = [
            Acl("User:cora", "describe", "topic", "anna-orders"),
            Acl("User:anna", "alter", "group", "spark-anna-flow-", "prefixed"),
            Acl("User:anna", "describe", "group", "spark-anna-flow-", "prefixed"),
            Acl("User:olga", "alter", "cluster"),
        ]
        found.create_acls(rules).checked()
        with Producer(**node.client_settings) as producer:
            for name in ("anna", "ben"):
                producer.send(f"{name}-orders", "x", partition=0)
        yield found


@pytest.fixture(scope="module")
def warehouse(node: EmbeddedBroker, admin: Admin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    for name in ("anna", "ben"):
        topic = f"{name}-orders"
        found = topic_id(admin, topic)
        commit(table_of(folder, f"{name}_table", topic, feed=True), topic, found, 0, 1, batch=0, query_id=f"{name}-q")
        pipeline_told(node.client_settings, f"{name}-flow", topic, offset=1, end=1, query_id=f"{name}-q")
    own, theirs = topic_id(admin, "anna-orders"), topic_id(admin, "ben-orders")
    both = table_of(folder, "anna_and_ben", "anna-orders")
    commit(both, "anna-orders", own, 0, 1, batch=0, query_id="both")
    both.refresh()
    commit(both, "ben-orders", theirs, 0, 1, batch=1, query_id="both")
    commit(table_of(folder, "anna_unknown", "anna-orders", feed=False), "anna-orders", own, 0, 1, batch=0)
    # A topic of that name in another cluster, or one that was deleted since.
    commit(table_of(folder, "anna_elsewhere", "anna-orders"), "anna-orders", "AAAAAAAAAAAAAAAAAAAAAQ", 0, 1, batch=0)
    return folder


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, warehouse: Path) -> Iterator[RunningConsole]:
    settings = settings_for(node.client_settings, login="kafka", warehouses=(WarehouseAddress(str(warehouse)),))
    with running(settings, ready_path="session") as found:
        yield found


@pytest.fixture(scope="module")
def people(console: RunningConsole) -> Iterator[dict[str, RunningConsole]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(logged_in(console, name)) for name in PEOPLE}


def names(person: RunningConsole, path: str) -> list[str]:
    told = person.wait(path, lambda told: "items" in told)
    return [row["name"] for row in told["items"]]


EVERY_READ = ["tables", "tables/anna_table", "pipelines", "pipelines/anna-flow", "overview", "agents"]


@pytest.mark.parametrize("path", EVERY_READ)
def test_who_is_not_logged_in_is_told_nothing(console: RunningConsole, path: str) -> None:
    reply = console.client.get(f"api/v1/{path}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "not_logged_in")
    assert "anna" not in reply.text
    assert console.client.post("api/v1/sql", json={"query": "SELECT 1"}).status_code == 401


def test_a_table_is_seen_by_who_may_read_all_that_feeds_it(people: dict[str, RunningConsole]) -> None:
    """One whose feed is not known, or is of another topic of that name, only by who could get any right."""
    everything = ["anna_and_ben", "anna_elsewhere", "anna_table", "anna_unknown", "ben_table"]
    seen = {name: names(person, "tables") for name, person in people.items()}
    assert seen == {"anna": ["anna_table"], "ben": ["ben_table"], "cora": [], "olga": everything}


@pytest.mark.parametrize("path", EVERY_READ)
def test_nothing_of_anna_is_shown_to_ben(people: dict[str, RunningConsole], path: str) -> None:
    people["anna"].client.get(f"api/v1/{path}")
    told = people["ben"].client.get(f"api/v1/{path}")
    if "anna" not in path:
        assert "anna" not in told.text
        return
    absent = people["ben"].client.get(f"api/v1/{path.replace('anna', 'zora')}")
    assert (told.status_code, absent.status_code) == (404, 404)
    assert told.text.replace("anna", "zora") == absent.text


def test_sql_knows_the_tables_of_whoever_asks(people: dict[str, RunningConsole]) -> None:
    anna, ben = people["anna"], people["ben"]
    assert anna.send("POST", "sql", {"query": "SELECT text FROM anna_table"})["rows"] == [["secret of anna-orders 0"]]
    for table in ("anna_table", "anna_and_ben", "anna_unknown", "zora_table"):
        reply = ben.client.post("api/v1/sql", json={"query": f"SELECT * FROM {table}"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "sql_refused"), table
        assert "secret" not in reply.text
        # Neither is it suggested that there is one.
        assert reply.text.count("anna") == table.count("anna") * reply.text.count(table)
    told = ben.send("POST", "sql", {"query": "SELECT table_name FROM information_schema.tables"})
    assert "anna" not in str(told["rows"])


def test_an_audit_needs_the_same(people: dict[str, RunningConsole]) -> None:
    assert people["anna"].send("POST", "tables/anna_table/audit")["done"]["sound"]
    assert people["ben"].refusal("tables/anna_table/audit", "POST", {}) == (404, "unknown_table")


def test_a_pipeline_is_seen_by_who_sees_its_topics(people: dict[str, RunningConsole]) -> None:
    seen = {name: names(person, "pipelines") for name, person in people.items()}
    assert seen["anna"] == ["anna-flow"]
    assert seen["ben"] == ["ben-flow"]
    assert seen["cora"] == ["anna-flow"]


def test_a_pipeline_is_stopped_by_who_may_alter_its_groups(people: dict[str, RunningConsole], admin: Admin) -> None:
    for name, pipeline in (("ben", "ben-flow"), ("cora", "anna-flow")):
        for verb in ("stop", "start", "redrive"):
            body = {"source": "orders"} if verb == "redrive" else {}
            assert people[name].refusal(f"pipelines/{pipeline}/{verb}", "POST", body) == (403, "forbidden"), name
    assert people["ben"].refusal("pipelines/anna-flow/stop", "POST", {}) == (404, "unknown_pipeline")
    assert people["anna"].get("pipelines/anna-flow")["wanted"] is None
    people["anna"].send("POST", "pipelines/anna-flow/stop")
    people["anna"].wait("pipelines/anna-flow", lambda told: told["wanted"] == "stop")
    # A rule that denies counts, from wherever it is about.
    rule = Acl("User:anna", "alter", "group", "spark-anna-flow-lake", host="10.0.0.1", permission="deny")
    admin.create_acls([rule]).checked()
    assert people["anna"].refusal("pipelines/anna-flow/stop", "POST", {}) == (403, "forbidden")


def test_a_right_that_is_taken_is_missed_at_once(people: dict[str, RunningConsole], admin: Admin) -> None:
    anna = people["anna"]
    assert names(anna, "tables") == ["anna_table"]
    admin.delete_acls([AclFilter(principal="User:anna", resource="topic")]).checked()
    wait_for("the table to go", lambda: names(anna, "tables") == [], timeout_s=15)
    assert anna.refusal("sql", "POST", {"query": "SELECT * FROM anna_table"}) == (400, "sql_refused")
    assert anna.refusal("pipelines/anna-flow") == (404, "unknown_pipeline")
