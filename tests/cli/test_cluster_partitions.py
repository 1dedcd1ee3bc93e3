"""`penstock cluster partitions|quorum|decommission|health` on a cluster of several nodes."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import EmbeddedCluster, cluster
from tests.cli.command import Said, penstock
from tests.compat.processes import wait_for
from tests.patience import within

PARTITIONS = ("cluster", "partitions")
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def four() -> Iterator[EmbeddedCluster]:
    """Three nodes with topics, and a fourth that came later and holds nothing. Tests may come in any selection."""
    with cluster(nodes=3) as running:
        penstock("topic", "create", "orders", "-p", "6", "-b", running.bootstrap_servers)
        penstock("topic", "create", "single", "-p", "3", "-r", "1", "-b", running.bootstrap_servers)
        penstock("produce", "orders", stdin="v\n" * 100, environment={"PENSTOCK_BOOTSTRAP": running.bootstrap_servers})
        running.add()
        yield running


def said(running: EmbeddedCluster, *arguments: str) -> Said:
    done = penstock(*arguments, environment={"PENSTOCK_BOOTSTRAP": running.bootstrap_servers})
    assert done.code == 0, done.out + done.err
    return done


def told(running: EmbeddedCluster, *arguments: str) -> Any:
    return said(running, *arguments, "--format", "json").data


def replicas(running: EmbeddedCluster, *topics: str) -> dict[tuple[str, int], list[int]]:
    found = told(running, *PARTITIONS, "list", *topics)
    return {(each["topic"], each["partition"]): each["replicas"] for each in found}


def test_a_fourth_broker_is_filled(four: EmbeddedCluster) -> None:
    before = replicas(four)
    assert 4 not in {node for nodes in before.values() for node in nodes}
    plan = told(four, *PARTITIONS, "balance", "--dry-run")
    assert replicas(four) == before, "a dry run changes nothing"
    assert plan
    done = told(four, *PARTITIONS, "balance", "--throttle", "100MB", "--at-once", "2")
    assert done == plan
    after = replicas(four)
    held = Counter(node for nodes in after.values() for node in nodes)
    assert max(held.values()) - min(held.values()) <= 1
    assert sorted(held) == [1, 2, 3, 4]
    leads = Counter(nodes[0] for nodes in after.values())
    assert max(leads.values()) - min(leads.values()) <= 1
    four.wait_until_in_sync()
    shares = {broker["id"]: broker["replicas"] for broker in told(four, "cluster", "brokers")}
    assert shares == held
    assert said(four, *PARTITIONS, "balance").err == "nothing has to move\n"
    for broker in ("1", "4"):
        configs = told(four, "cluster", "config", "list", "--broker", broker)
        assert not [name for name in configs if "throttled" in name], "a throttle is taken away again"
    assert "throttled" not in said(four, "topic", "describe", "orders").out


def test_partitions_move_where_they_are_told(four: EmbeddedCluster) -> None:
    said(four, *PARTITIONS, "move", "orders:0", "--to", "4,1", "--wait")
    assert replicas(four, "orders:0") == {("orders", 0): [4, 1]}
    assert four.leader_of("orders", 0) in (4, 1)
    said(four, *PARTITIONS, "move", "orders", "--to", "1,2,3", "--wait")
    assert replicas(four, "orders")["orders", 4] == [2, 3, 1], "leaders are spread"
    assert said(four, *PARTITIONS, "move", "orders:0", "--to", "1,2,3").err == "nothing has to move\n"
    assert said(four, *PARTITIONS, "status").err == "nothing is being moved\n"
    assert said(four, *PARTITIONS, "status", "--wait").code == 0
    assert said(four, *PARTITIONS, "cancel", "--yes").err == "nothing is being moved\n"
    moving = said(four, *PARTITIONS, "move", "single:0", "--to", "4")
    assert "is moving 1 partition, 1 replica to copy" in moving.err
    said(four, *PARTITIONS, "status", "--wait")
    assert replicas(four, "single:0") == {("single", 0): [4]}


def test_preferred_leaders_are_elected(four: EmbeddedCluster) -> None:
    four.restart(2)
    four.wait_until_in_sync()
    away = told(four, *PARTITIONS, "list", "--only", "not-preferred")
    assert away
    elected = told(four, "cluster", "elect")["elected"]
    assert {(each["topic"], each["partition"]) for each in away} <= {
        (each["topic"], each["partition"]) for each in elected
    }
    assert said(four, *PARTITIONS, "list", "--only", "not-preferred").err == (
        "every partition is led by its preferred leader\n"
    )
    assert "needed another leader" in said(four, "cluster", "elect", "orders:0").err
    assert "needed another leader" in said(four, "cluster", "elect", "orders", "--unclean", "--yes").err


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("partitions", "move", "absent", "--to", "1"), 3, "topic 'absent' does not exist"),
        (("partitions", "move", "orders:77", "--to", "1"), 3, "partition 77 of topic 'orders' does not exist"),
        (("partitions", "move", "orders", "--to", "1,9"), 3, "there is no broker 9"),
        (("partitions", "move", "orders", "--to", "1,1"), 2, "names a broker twice"),
        (("partitions", "move", "orders", "--to", "1", "--throttle", "fast"), 2, "is no rate"),
        (("partitions", "list", "absent"), 3, "topic 'absent' does not exist"),
        (("partitions", "elect", "absent"), 3, "topic 'absent' does not exist"),
        (("partitions", "balance", "--brokers", "1"), 1, "start another first"),
        (("decommission", "77"), 3, "there is no broker 77"),
        (("quorum", "remove-voter", "4", "--yes"), 3, "node 4 is no voter"),
        (("quorum", "add-voter", "9", "--at", "127.0.0.1:1"), 3, "node 9 is no observer"),
    ],
)
def test_what_cannot_be_is_told(four: EmbeddedCluster, command: tuple[str, ...], code: int, words: str) -> None:
    done = penstock("cluster", *command, environment={"PENSTOCK_BOOTSTRAP": four.bootstrap_servers})
    assert (done.code, done.out) == (code, "")
    assert words in done.err


def test_a_voter_goes_and_comes_back(four: EmbeddedCluster) -> None:
    bystander = next(node for node in (1, 2, 3) if node != four.controller)
    gone = said(four, "cluster", "quorum", "remove-voter", str(bystander), "--yes")
    assert f"node {bystander} does not vote any more" in gone.err
    found = told(four, "cluster", "quorum")
    assert bystander not in [voter["id"] for voter in found["voters"]]
    wait_for(
        "it to follow as an observer",
        lambda: bystander in [each["id"] for each in told(four, "cluster", "quorum")["observers"]],
        timeout_s=DEADLINE_S,
    )
    back = said(
        four, "cluster", "quorum", "add-voter", str(bystander), "--at", four.controller_address(bystander)
    )  # fmt: skip
    assert f"node {bystander} votes now" in back.err
    assert sorted(voter["id"] for voter in told(four, "cluster", "quorum")["voters"]) == [1, 2, 3]


def test_a_broker_is_emptied_and_forgotten(four: EmbeddedCluster) -> None:
    said(four, *PARTITIONS, "move", "single:0", "orders:1", "--to", "4", "--wait")
    plan = told(four, "cluster", "decommission", "4", "--dry-run")
    assert {each["topic"] for each in plan} == {"single", "orders"}
    first = said(four, "cluster", "decommission", "4")
    assert "holds nothing any more. Stop it" in first.err
    assert 4 not in {node for nodes in replicas(four).values() for node in nodes}
    four.stop(4)
    wait_for(
        "broker 4 to be missed",
        lambda: [b["fenced"] for b in told(four, "cluster", "brokers") if b["id"] == 4] == [True],
        timeout_s=DEADLINE_S,
    )
    assert "is no part of the cluster any more" in said(four, "cluster", "decommission", "4").err
    assert [broker["id"] for broker in told(four, "cluster", "brokers")] == [1, 2, 3]
    del four.nodes[4]


def test_health_names_what_is_lost_and_what_to_try(four: EmbeddedCluster) -> None:
    environment = {"PENSTOCK_BOOTSTRAP": four.bootstrap_servers}
    said(four, "topic", "create", "strict", "-p", "1", "-c", "min.insync.replicas=3")
    lost = next(node for node in replicas(four, "strict")["strict", 0] if node != four.controller)
    four.kill(lost)

    def ill() -> Any:
        done = penstock("cluster", "health", "--format", "json", environment=environment)
        kinds = {reason["kind"]: reason for reason in done.data["reasons"]}
        seen = "brokers_down" in kinds and "strict-0" in kinds.get("under_min_isr", {"items": []})["items"]
        return kinds if done.code == 10 and seen else None

    found = wait_for("the loss to be seen", ill, timeout_s=DEADLINE_S)
    assert found["brokers_down"]["items"] == [f"broker {lost}"]
    assert "penstock cluster decommission" in found["brokers_down"]["attempt"]
    assert "strict-0" in found["under_replicated"]["items"]
    text = penstock("cluster", "health", environment=environment).out
    assert text.splitlines()[0] == "unhealthy"
    assert "too few in-sync replicas" in text
    assert "    try: " in text
    sick = penstock("doctor", "--format", "json", environment=environment)
    assert sick.code == 10
    assert {"brokers_down", "under_min_isr"} <= {found["kind"] for found in sick.data["findings"]}
    refused = penstock(*PARTITIONS, "balance", environment=environment)
    assert refused.code == 1
    assert f"broker {lost} is down" in refused.err
    four.start(lost)
    healthy = penstock(
        "cluster", "health", "--watch", "--exit-when-healthy", "--interval", "0.1", environment=environment
    )
    assert healthy.code == 0


def test_a_lost_majority_is_told(four: EmbeddedCluster) -> None:
    """Brokers that are left answer what they know, but nobody leads them."""
    four.wait_until_in_sync()
    for node_id in (1, 2):
        four.kill(node_id)
    environment = {"PENSTOCK_BOOTSTRAP": four.bootstrap_servers}

    def ill() -> Any:
        patience_ms = within(1_000)
        patience = ("-X", f"default_api_timeout_ms={patience_ms}", "-X", f"request_timeout_ms={patience_ms}")
        done = penstock("cluster", "health", "--format", "json", *patience, environment=environment)
        kinds = {reason["kind"]: reason for reason in done.data["reasons"]}
        return kinds if done.code == 10 and "no_controller" in kinds else None

    kinds = wait_for("the leader to see that it is alone", ill, timeout_s=DEADLINE_S)
    assert kinds["brokers_down"]["items"] == ["broker 1", "broker 2"]
    assert "a majority of them runs" in kinds["no_controller"]["attempt"]
    four.start(1, 2)
    four.wait_until_in_sync()


def wipe(running: EmbeddedCluster, node_id: int) -> None:
    """Its disk is lost; it is formatted as a node that joins, and comes back."""
    running.kill(node_id)
    shutil.rmtree(f"{running.data_dir}/node-{node_id}")
    running._format([node_id])
    running.start(node_id)


def replaced(running: EmbeddedCluster) -> str | None:
    health = penstock("cluster", "health", "--format", "json", "-b", running.bootstrap_servers)
    found = [reason["items"][0] for reason in health.data["reasons"] if reason["kind"] == "voters_replaced"]
    return found[0] if found else None


def test_a_voter_whose_disk_was_wiped_twice_comes_back_by_doing_what_is_said() -> None:
    with cluster(nodes=3) as running:
        environment = {"PENSTOCK_BOOTSTRAP": running.bootstrap_servers}
        lost = next(node for node in (1, 2, 3) if node != running.controller)
        adding = ("cluster", "quorum", "add-voter", str(lost), "--at", running.controller_address(lost))
        for _ in range(2):
            wipe(running, lost)
            named_by_health = wait_for("the new directory", lambda: replaced(running), timeout_s=DEADLINE_S)
            assert named_by_health.startswith(f"node {lost} (lost ")
            duplicate = penstock(*adding, environment=environment)
            assert duplicate.code == 1
            (removing,) = re.findall(r"`penstock (cluster quorum remove-voter [^`]+)`", duplicate.err)
            assert penstock(*removing.split(), "--yes", environment=environment).code == 0
            observers = [each for each in told(running, "cluster", "quorum")["observers"] if each["id"] == lost]
            assert len(observers) > 1, "lost directories are remembered for a while"
            ambiguous = penstock(*adding, environment=environment)
            assert ambiguous.code == 3
            (named,) = re.findall(r"--directory-id (\S+) if that is the directory.id", ambiguous.err)
            listed = said(running, "cluster", "quorum").out
            assert all(each["directory_id"] in listed for each in observers)
            written = Path(running.data_dir, f"node-{lost}", "meta.properties").read_text()
            assert f"directory.id={named}" in written
            said(running, *adding, "--directory-id", named)
        assert sorted(voter["id"] for voter in told(running, "cluster", "quorum")["voters"]) == [1, 2, 3]
