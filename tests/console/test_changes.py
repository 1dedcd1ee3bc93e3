"""What is changed is planned first if that is asked for, written down, and can be done by the command that is told."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.client.admin import ConfigResource
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole, running, settings_for
from tests.patience import within


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "changes.log"


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, audit: Path) -> Iterator[RunningConsole]:
    with running(settings_for(node.client_settings, audit_log=str(audit))) as found:
        yield found


@pytest.fixture(scope="module")
def admin(node: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(**node.client_settings) as found:
        yield found


def run(command: str, node: EmbeddedBroker) -> str:
    """A command that the console told, as somebody would paste it."""
    words = shlex.split(command)
    assert words[0] == "penstock"
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", *words[1:]],
        env={**os.environ, "PENSTOCK_BOOTSTRAP": node.bootstrap_servers},
        capture_output=True,
        text=True,
        timeout=within(60),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_topic_comes_is_changed_and_goes(
    console: RunningConsole, node: EmbeddedBroker, admin: Admin, audit: Path
) -> None:
    wanted = {"name": "made", "partitions": 2, "configs": {"retention.ms": "7d"}}
    planned = console.send("POST", "topics", {**wanted, "dry_run": True})
    assert "made" not in [topic.name for topic in admin.topics()]
    assert planned["command"] == "penstock topic create -p 2 -c retention.ms=604800000 made"
    done = console.send("POST", "topics", wanted)
    found = admin.describe_topic("made")
    assert (done["done"]["id"], len(found.partitions), found.configs) == (found.id, 2, {"retention.ms": "604800000"})
    assert console.refusal("topics", "POST", wanted) == (409, "conflict")
    assert console.refusal("topics", "POST", {"name": "a b"}) == (400, "bad_request")
    console.wait(
        "log", lambda told: [each["params"].get("action") for each in told["items"]].count("create_topic") == 1
    )

    assert console.send("POST", "topics/made/grow", {"partitions": 4})["done"] == {"was": 2, "to": 4}
    assert len(admin.describe_topic("made").partitions) == 4
    assert console.refusal("topics/made/grow", "POST", {"partitions": 3}) == (400, "bad_request")

    change = {"set": {"retention.ms": "1h", "cleanup.policy": "compact"}, "unset": ["segment.bytes"]}
    planned = console.send("PATCH", "topics/made/config", {**change, "dry_run": True})
    assert [(each["name"], each["was"], each["to"]) for each in planned["plan"]["changes"]] == [
        ("cleanup.policy", "delete", "compact"),
        ("retention.ms", "604800000", "3600000"),
        ("segment.bytes", "1073741824", None),
    ]
    assert admin.describe_topic("made").configs == {"retention.ms": "604800000"}
    console.send("PATCH", "topics/made/config", change)
    assert admin.describe_topic("made").configs == {"retention.ms": "3600000", "cleanup.policy": "compact"}
    assert console.refusal("topics/made/config", "PATCH", {"set": {"retention.ms": "soon"}}) == (400, "bad_request")
    assert console.refusal("topics/made/config", "PATCH", {"set": {"no.such": "1"}}) == (400, "bad_request")
    assert console.refusal("topics/made/config", "PATCH", {}) == (400, "bad_request")

    assert console.refusal("topics/made", "DELETE", {"confirm": "other"}) == (400, "not_confirmed")
    plan = console.send("DELETE", "topics/made", {"dry_run": True})["plan"]
    assert (plan["partitions"], plan["records"]) == (4, "0")
    console.send("DELETE", "topics/made", {"confirm": "made"})
    assert "made" not in [topic.name for topic in admin.topics()]
    console.wait("topics", lambda told: "made" not in [row["name"] for row in told["items"]])
    written = [json.loads(line) for line in audit.read_text().splitlines()]
    mine = [(each["action"], each["outcome"]) for each in written if each.get("topic") == "made"]
    assert mine == [
        ("create_topic", "asked"),
        ("create_topic", "done"),
        ("create_topic", "asked"),
        ("create_topic", "failed"),
        ("grow_topic", "asked"),
        ("grow_topic", "done"),
        ("change_config", "asked"),
        ("change_config", "done"),
        ("delete_topic", "asked"),
        ("delete_topic", "done"),
    ]
    assert {each["who"] for each in written} == {"anybody"}


def test_commands_that_are_told_do_the_same(console: RunningConsole, node: EmbeddedBroker, admin: Admin) -> None:
    told = console.send("POST", "topics", {"name": "-dashed", "partitions": 2, "dry_run": True})
    run(told["command"], node)
    assert len(admin.describe_topic("-dashed").partitions) == 2
    change = {"set": {"retention.ms": "2h"}, "dry_run": True}
    run(console.send("PATCH", "topics/-dashed/config", change)["command"], node)
    assert admin.describe_topic("-dashed").configs == {"retention.ms": "7200000"}
    change = {"unset": ["retention.ms"], "dry_run": True}
    run(console.send("PATCH", "topics/-dashed/config", change)["command"], node)
    assert admin.describe_topic("-dashed").configs == {}
    assert "-dashed" in run(console.get("topics/-dashed")["command"], node)
    run(console.send("POST", "topics/-dashed/grow", {"partitions": 3, "dry_run": True})["command"], node)
    change = {"set": {"log.cleaner.threads": "2"}, "dry_run": True}
    run(console.send("PATCH", "brokers/1/config", change)["command"], node)
    broker = ConfigResource.broker(1)
    assert admin.describe_configs([broker]).checked()[broker]["log.cleaner.threads"].value == "2"
    run(console.send("DELETE", "topics/-dashed", {"dry_run": True})["command"], node)
    assert "-dashed" not in [topic.name for topic in admin.topics()]


def offsets(admin: Admin, group: str) -> dict[tuple[str, int], int]:
    return {tuple(item): found.offset for item, found in admin.group_offsets(group).items()}


def test_a_group_is_moved_with_a_preview_and_back(console: RunningConsole, node: EmbeddedBroker, admin: Admin) -> None:
    admin.create_topic("walked", 2, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(20):
            producer.send("walked", b"v", partition=number % 2)
    admin.alter_group_offsets("walker", {TopicPartition("walked", 0): 8})
    before = offsets(admin, "walker")
    preview = console.send("POST", "groups/walker/reset", {"to": "earliest", "dry_run": True})
    assert preview["plan"] == {
        "positions": [{"topic": "walked", "partition": 0, "was": "8", "to": "0", "records": "-8"}],
        "replayed": "8",
        "skipped": "0",
    }
    assert offsets(admin, "walker") == before
    done = console.send("POST", "groups/walker/reset", {"to": "latest", "topics": {"walked": []}})
    assert offsets(admin, "walker") == {("walked", 0): 10, ("walked", 1): 10}
    assert [each["id"] for each in console.get("groups/walker")["undo"]] == [done["undo"]]
    console.send("POST", "groups/walker/undo", {"id": done["undo"]})
    assert offsets(admin, "walker") == before
    assert console.refusal("groups/walker/undo", "POST", {"id": done["undo"]}) == (404, "not_found")

    console.send("POST", "groups/walker/reset", {"to": "offset:3"})
    assert offsets(admin, "walker") == {("walked", 0): 3}
    console.send("POST", "groups/walker/reset", {"to": "-2"})
    assert offsets(admin, "walker") == {("walked", 0): 8}
    console.send("POST", "groups/walker/reset", {"to": "+5"})
    assert offsets(admin, "walker") == {("walked", 0): 5}
    console.send("POST", "groups/walker/reset", {"offsets": {"walked": {"1": "7"}}})
    assert offsets(admin, "walker") == {("walked", 0): 5, ("walked", 1): 7}
    copied = console.send("POST", "groups/other/reset", {"from_group": "walker"})
    assert offsets(admin, "other") == offsets(admin, "walker")
    told = console.send("POST", "groups/walker/reset", {"to": "time:2000-01-01", "dry_run": True})
    run(told["command"], node)
    assert offsets(admin, "walker") == {("walked", 0): 0, ("walked", 1): 0}
    assert copied["undo"]

    console.send("DELETE", "groups/walker/offsets", {"topics": {"walked": [1]}})
    assert offsets(admin, "walker") == {("walked", 0): 0}
    assert console.refusal("groups/walker", "DELETE", {}) == (400, "not_confirmed")
    console.send("DELETE", "groups/walker", {"confirm": "walker"})
    assert "walker" not in [group.id for group in admin.groups()]


def test_the_moves_that_were_looked_at_are_made_and_no_others(
    console: RunningConsole, node: EmbeddedBroker, admin: Admin
) -> None:
    admin.create_topic("grows", 1, 1)
    with Producer(**node.client_settings) as producer:
        producer.send("grows", b"v")
        producer.flush()
        admin.alter_group_offsets("follower", {TopicPartition("grows", 0): 0})
        plan = console.send("POST", "groups/follower/reset", {"to": "latest", "dry_run": True})["plan"]
        producer.send("grows", b"came since")
    done = console.send("POST", "groups/follower/reset", {"plan": plan["positions"]})
    assert done["done"] == plan
    assert offsets(admin, "follower") == {("grows", 0): 1}
    assert console.refusal("groups/follower/reset", "POST", {"plan": plan["positions"]}) == (409, "conflict")
    assert offsets(admin, "follower") == {("grows", 0): 1}
    for wrong in ([], [{}], [{**plan["positions"][0], "to": "-1"}], plan["positions"] * 2, {"0": 1}, [1]):
        assert console.refusal("groups/follower/reset", "POST", {"plan": wrong}) == (400, "bad_request")


def test_a_move_that_failed_half_way_can_be_taken_back(console: RunningConsole, admin: Admin) -> None:
    admin.create_topic("half", 1, 1)
    admin.alter_group_offsets("halved", {TopicPartition("half", 0): 7})
    wanted = {"offsets": {"half": {"0": "3"}, "never-made": {"0": "1"}}}
    reply = console.client.post("api/v1/groups/halved/reset", json=wanted)
    assert reply.status_code >= 400
    assert offsets(admin, "halved") == {("half", 0): 3}, "the broker took what it could"
    console.send("POST", "groups/halved/undo", {"id": reply.json()["error"]["params"]["undo"]})
    assert offsets(admin, "halved") == {("half", 0): 7}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"to": "earliest", "from_group": "other"},
        {"to": "somewhere"},
        {"offsets": {"walked": {"0": "-5"}}},
        {"offsets": {"walked": {"x": "1"}}},
        {"offsets": []},
        {"to": "earliest", "topics": ["walked"]},
        {"to": "earliest", "topics": {"walked": [-1]}},
    ],
)
def test_where_a_group_cannot_go(console: RunningConsole, body: Any) -> None:
    assert console.refusal("groups/nowhere/reset", "POST", body)[0] in (400, 404)


def test_a_group_with_members_is_not_moved(console: RunningConsole, node: EmbeddedBroker, admin: Admin) -> None:
    admin.create_topic("busy", 1, 1)
    with Consumer("busy", group_id="busy", **node.client_settings) as consumer:
        consumer.poll(timeout_ms=100)
        console.wait("groups", lambda told: any(row["members"] for row in told["items"] if row["group"] == "busy"))
        assert console.refusal("groups/busy/reset", "POST", {"to": "earliest", "topics": {"busy": []}}) == (
            409,
            "group_active",
        )


def test_records_are_trimmed(console: RunningConsole, node: EmbeddedBroker, admin: Admin) -> None:
    admin.create_topic("trimmed", 2, 1)
    with Producer(**node.client_settings) as producer:
        for _ in range(10):
            producer.send("trimmed", b"v", partition=0)
    plan = console.send("POST", "topics/trimmed/trim", {"before": {"0": "4"}, "dry_run": True})["plan"]
    assert plan == [{"partition": 0, "start": "0", "before": "4", "records": "4"}]
    assert console.send("POST", "topics/trimmed/trim", {"before": {"0": "4"}, "confirm": "trimmed"})["done"] == {
        "0": "4"
    }
    assert admin.describe_topic("trimmed").partitions[0].start == 4
    assert console.refusal("topics/trimmed/trim", "POST", {"before": {"9": "4"}}) == (400, "bad_request")
    assert console.refusal("topics/trimmed/trim", "POST", {"before": {}}) == (400, "bad_request")


def test_a_group_whose_name_has_slashes(console: RunningConsole, admin: Admin) -> None:
    admin.create_topic("slashed", 1, 1)
    admin.alter_group_offsets("a/b c", {TopicPartition("slashed", 0): 0})
    page = console.get("groups/a%2Fb%20c")
    assert (page["group"], page["command"]) == ("a/b c", "penstock group describe 'a/b c'")
    console.send("DELETE", "groups/a%2Fb%20c", {"confirm": "a/b c"})
