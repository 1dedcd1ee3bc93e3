"""Looking at what a change would do changes nothing: no record, no position, no rule, no line of the audit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.blocking import Admin, Producer
from penstock.client.admin import Acl
from penstock.console.routes.table import TABLE
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, running, settings_for

TAB = "a-tab-that-only-looks"
READ = {"principal": "User:anna", "operation": "read", "resource": "topic", "name": "looked-at"}
KEPT = {**READ, "operation": "describe"}

BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/login"): {"user": "anna", "password": "none"},
    ("POST", "/logout"): {},
    ("PATCH", "/brokers/{id}/config"): {"set": {"log.cleaner.threads": "3"}},
    ("POST", "/topics"): {"name": "not-made"},
    ("DELETE", "/topics/{name}"): {"confirm": "looked-at"},
    ("PATCH", "/topics/{name}/config"): {"set": {"retention.ms": "1h"}},
    ("POST", "/topics/{name}/grow"): {"partitions": 5},
    ("POST", "/topics/{name}/trim"): {"before": {"0": "2", "1": "end"}, "confirm": "looked-at"},
    ("POST", "/topics/{name}/elect"): {},
    ("POST", "/topics/{name}/records"): {"value": "not sent"},
    ("POST", "/topics/{name}/read"): {"from": "oldest"},
    ("POST", "/topics/{name}/records/{partition}/{offset}/send"): {"to": "looked-at"},
    ("POST", "/v3/clusters/{cluster_id}/topics/{name}/records"): {"value": {"type": "STRING", "data": "not sent"}},
    ("POST", "/groups/{name:path}/reset"): {"to": "earliest"},
    ("POST", "/groups/{name:path}/undo"): {},
    ("DELETE", "/groups/{name:path}/offsets"): {"topics": {"looked-at": []}},
    ("DELETE", "/groups/{name:path}"): {"confirm": "reader"},
    ("POST", "/transactions/abort"): {"topic": "looked-at", "partition": 0, "start_offset": "0"},
    ("POST", "/access/acls"): READ,
    ("DELETE", "/access/acls"): KEPT,
    ("POST", "/tabs/{tab}/subscriptions"): {"kind": "tail", "topic": "looked-at"},
    ("DELETE", "/tabs/{tab}/subscriptions/{id}"): {},
    ("POST", "/conditions/check"): {"where": "value.n == 1"},
    ("POST", "/pipelines/{name:path}/stop"): {},
    ("POST", "/pipelines/{name:path}/start"): {},
    ("POST", "/pipelines/{name:path}/redrive"): {"source": "orders"},
    ("POST", "/tables/{name:path}/audit"): {},
    ("POST", "/sql"): {"query": "select 1"},
}
"""What each address takes to change something, were it not for the preview."""
NOT_DONE = ("no_preview", "bad_request", "not_found", "unknown_pipeline", "unknown_table")
PLACES = {
    "{id}": "1",
    "{name}": "looked-at",
    "{name:path}": "reader",
    "{tab}": TAB,
    "{partition}": "0",
    "{offset}": "0",
}


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found:
        yield found


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "changes.log"


@pytest.fixture(scope="module")
def admin(node: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(**node.client_settings) as found:
        found.create_topic("looked-at", 2, 1)
        with Producer(**node.client_settings) as producer:
            for number in range(10):
                producer.send("looked-at", b"v", partition=number % 2)
        found.alter_group_offsets("reader", {TopicPartition("looked-at", 0): 4})
        found.create_acls([Acl(**KEPT)]).checked()
        yield found


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, admin: Admin, audit: Path) -> Iterator[RunningConsole]:
    with running(settings_for(node.client_settings, audit_log=str(audit))) as found:
        yield found


@pytest.fixture(scope="module")
def undo(console: RunningConsole) -> str:
    """A move that can be taken back."""
    return str(console.send("POST", "groups/reader/reset", {"to": "latest"})["undo"])


def everything(admin: Admin, audit: Path) -> dict[str, Any]:
    """All that a change could change."""
    described = admin.describe_topic("looked-at")
    return {
        "topics": sorted(topic.name for topic in admin.topics()),
        "topic": described,
        "ends": [(each.start, each.end) for each in described.partitions],
        "groups": sorted(group.id for group in admin.groups()),
        "positions": {tuple(item): found.offset for item, found in admin.group_offsets("reader").items()},
        "rules": sorted(map(str, admin.describe_acls())),
        "audit": audit.read_text(),
    }


CHANGING = sorted({(method, path) for method, path, *_ in TABLE if method != "GET"})


@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_a_preview_changes_nothing(
    console: RunningConsole, admin: Admin, audit: Path, undo: str, method: str, path: str
) -> None:
    where = f"api/v1{path}"
    for part, text in PLACES.items():
        where = where.replace(part, "t1" if part == "{id}" and "tabs" in path else text)
    where = where.replace("{cluster_id}", console.get("v3/clusters")["data"][0]["cluster_id"])
    body = {"id": undo} if path.endswith("/undo") else BODIES.get((method, path), {})
    before = everything(admin, audit)
    with console.events(TAB) as events:
        next(events)
        reply = console.client.request(method, where, json={**body, "dry_run": True})
    assert everything(admin, audit) == before
    if reply.is_success:
        assert "plan" in reply.json() or path == "/conditions/check", "what would be done is told"
        assert "done" not in reply.json()
    else:
        assert reply.status_code in (400, 404), reply.text
        if body:
            assert reply.json()["error"]["code"] in NOT_DONE, reply.text


def test_every_address_that_changes_something_is_looked_at() -> None:
    missing = [where for where in CHANGING if where not in BODIES]
    assert missing == [], "say in BODIES what these take"


def test_what_cannot_be_looked_at_beforehand_says_so(console: RunningConsole) -> None:
    assert console.refusal("topics/looked-at/records", "POST", {"value": "v", "dry_run": True}) == (400, "no_preview")
    assert console.refusal("topics", "POST", {"name": "x", "dry_run": "no"}) == (400, "bad_request")
    assert console.refusal("topics", "POST", {"name": "x"}, dry_run=1) == (400, "bad_request")


def test_elections_and_moves_back_are_planned(console: RunningConsole, undo: str) -> None:
    told = console.send("POST", "topics/looked-at/elect", {"dry_run": True})
    assert told["plan"] == {"partitions": []}, "all are led by those that are preferred"
    told = console.send("POST", "groups/reader/undo", {"id": undo, "dry_run": True})
    assert told["plan"]["positions"] == [{"topic": "looked-at", "partition": 0, "was": "5", "to": "4", "records": "-1"}]
    assert console.refusal("groups/reader/undo", "POST", {"id": "none", "dry_run": True}) == (404, "not_found")
    assert [each["id"] for each in console.get("groups/reader")["undo"]] == [undo], "it is still to be had"


@pytest.fixture
def logs(admin: Admin, node: EmbeddedBroker) -> str:
    admin.create_topic("cut", 3, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(30):
            producer.send("cut", b"v", partition=number % 3)
    return "cut"


def test_a_log_is_cut_where_it_was_said_and_nowhere_else(console: RunningConsole, admin: Admin, logs: str) -> None:
    def starts() -> list[int]:
        return [each.start for each in admin.describe_topic(logs).partitions]

    path = f"topics/{logs}/trim"
    for before in ({"0": "-1"}, {"0": -1}, {"0": "11"}, {"0": "all"}, {"9": "1"}, {"0": "²"}, {}):
        assert console.refusal(path, "POST", {"before": before, "confirm": logs})[0] in (400, 404), before
    planned = console.send("POST", path, {"before": {"0": "3", "1": "7", "2": "end"}, "dry_run": True})
    assert planned["plan"] == [
        {"partition": 0, "start": "0", "before": "3", "records": "3"},
        {"partition": 1, "start": "0", "before": "7", "records": "7"},
        {"partition": 2, "start": "0", "before": "10", "records": "10"},
    ]
    assert console.refusal(path, "POST", {"before": {"0": "3"}}) == (400, "not_confirmed")
    assert console.refusal(path, "POST", {"before": {"0": "3"}, "confirm": "other"}) == (400, "not_confirmed")
    assert starts() == [0, 0, 0]
    commands = planned["command"].split(" && ")
    assert [shlex.split(each)[:3] for each in commands] == [["penstock", "topic", "trim"]] * 3
    assert [shlex.split(each)[3:] for each in commands] == [
        ["--partition", "0", "--before", "3", "--yes", logs],
        ["--partition", "1", "--before", "7", "--yes", logs],
        ["--partition", "2", "--before", "10", "--yes", logs],
    ]
    done = console.send("POST", path, {"before": {"0": "3", "1": "3"}, "confirm": logs})
    assert (done["done"], starts()) == ({"0": "3", "1": "3"}, [3, 3, 0])
    assert shlex.split(done["command"])[3:] == ["--partition", "0", "--partition", "1", "--before", "3", "--yes", logs]
