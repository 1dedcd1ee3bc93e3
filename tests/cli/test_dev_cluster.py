"""`penstock dev --nodes 3`: three processes, one of them killed and brought back, a fourth added, all stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.dev_cluster import create, find
from penstock.cli.dev_ports import ephemeral_ports
from penstock.cli.dev_processes import NodeProcess, kill
from penstock.processes import command_line
from tests.cli.command import Running, penstock
from tests.compat.processes import wait_for
from tests.patience import stretched

BOOTSTRAP = r"bootstrap\s+(\S+)"
DEADLINE_S = 60.0
QUICK = {
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
}
STRETCH_MAX = 5.0


def dev(folder: Path, *more: str) -> Running:
    quick = [word for each in stretched(QUICK, STRETCH_MAX).items() for word in ("-c", "=".join(each))]
    return Running(
        "dev", "--nodes", "3", "--port", "0", "--data-dir", folder, *quick, *more, log=folder.parent / "dev.log"
    )


def pid_of(folder: Path, node_id: int) -> int:
    return int((folder / f"node-{node_id}.pid").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """No process outlives a test that failed."""
    folder = tmp_path / "data"
    yield folder
    for node_id in range(1, 5):
        kill(NodeProcess(folder, node_id))


def values(bootstrap: str, count: int) -> list[str]:
    return sorted(penstock("consume", "t", "-o", "start", "-n", str(count), "-f", "text", "-b", bootstrap).out.split())


def test_a_node_is_killed_and_comes_back_another_is_added_and_all_stop(folder: Path) -> None:
    with dev(folder) as running:
        bootstrap = running.wait_to_say(BOOTSTRAP)[1]
        running.wait_to_say("try")
        assert len(bootstrap.split(",")) == 3
        assert penstock("topic", "create", "t", "-p", "3", "-b", bootstrap).code == 0
        (topic,) = penstock("topic", "describe", "t", "--format", "json", "-b", bootstrap).data
        assert [len(partition["replicas"]) for partition in topic["partitions"]] == [3, 3, 3]
        assert penstock("produce", "t", "-b", bootstrap, stdin="one\n").code == 0

        was = pid_of(folder, 2)
        killed = penstock("dev", "kill", "2", "--data-dir", folder)
        assert (killed.code, killed.err) == (0, f"killed node 2 (process {was})\n")
        running.wait_to_say(r"node 2 is gone; bring it back with: penstock dev start 2 --data-dir \S+")
        assert penstock("dev", "kill", "2", "--data-dir", folder).err == "node 2 was not running\n"
        assert penstock("produce", "t", "-b", bootstrap, stdin="two\n").code == 0

        back = penstock("dev", "start", "2", "--data-dir", folder)
        assert (back.code, back.err) == (0, f"node 2 is ready on {bootstrap.split(',')[1]}\n")
        running.wait_to_say("node 2 is back")
        assert "runs already" in penstock("dev", "start", "2", "--data-dir", folder).err
        watched = penstock("cluster", "health", "--watch", "--exit-when-healthy", "--interval", "0.1", "-b", bootstrap)
        assert watched.code == 0, watched.out + watched.err
        assert values(bootstrap, 2) == ["one", "two"]

        added = penstock("dev", "start", "4", "--data-dir", folder)
        assert added.code == 0, added.err
        assert "penstock cluster partitions balance" in added.err

        def brokers() -> list[int]:
            return [each["id"] for each in penstock("cluster", "brokers", "--format", "json", "-b", bootstrap).data]

        # Node 4 knows that it serves; whichever node is asked may hear of it a moment later.
        wait_for("everybody to know of node 4", lambda: brokers() == [1, 2, 3, 4], timeout_s=DEADLINE_S)
        quorum = penstock("cluster", "quorum", "--format", "json", "-b", bootstrap).data
        assert sorted(voter["id"] for voter in quorum["voters"]) == [1, 2, 3]

        pids = [pid_of(folder, node_id) for node_id in (1, 2, 3, 4)]
        assert running.stop(signal.SIGINT) == 0
        assert "Traceback" not in running.words
    assert [command_line(pid) for pid in pids] == [""] * 4, "no node is left"
    assert not list(folder.glob("*.pid"))
    assert all((folder / f"node-{node_id}" / ".kafka_cleanshutdown").exists() for node_id in (1, 2, 3, 4))


def test_a_node_that_was_decommissioned_stays_away(folder: Path) -> None:
    with dev(folder) as running:
        bootstrap = running.wait_to_say(BOOTSTRAP)[1]
        running.wait_to_say("try")
        assert penstock("dev", "start", "4", "--data-dir", folder).code == 0
        assert "holds nothing any more" in penstock("cluster", "decommission", "4", "-b", bootstrap).err
        assert penstock("dev", "stop", "4", "--data-dir", folder).err == "stopped node 4\n"
        running.wait_to_say("node 4 has stopped; let the cluster forget it with: penstock cluster decommission 4 -b")
        waiting = penstock("cluster", "decommission", "4", "--wait", "-b", bootstrap)
        assert "is no part of the cluster any more" in waiting.err
        running.wait_to_say("node 4 is no part of the cluster any more")
        assert running.stop(signal.SIGINT) == 0
    cluster = find(folder)
    assert cluster is not None
    assert (cluster.nodes, cluster.leaving) == ([1, 2, 3], [])
    assert penstock("dev", "kill", "4", "--data-dir", folder).code == 3
    running._child.log.unlink()
    with dev(folder) as running:
        running.wait_to_say("try")
        assert cluster.process(4).pid is None
        assert penstock("dev", "start", "4", "--data-dir", folder).code == 0, "it can be added again"
        assert running.stop(signal.SIGINT) == 0


def test_data_outlives_the_cluster_and_stop_reaches_it_from_elsewhere(folder: Path) -> None:
    ports = []
    for expected in (["one"], ["one"]):
        with dev(folder) as running:
            bootstrap = running.wait_to_say(BOOTSTRAP)[1]
            running.wait_to_say("try")
            ports.append(bootstrap)
            if len(ports) == 1:
                penstock("topic", "create", "t", "-b", bootstrap)
                penstock("produce", "t", "-b", bootstrap, stdin="one\n")
            assert values(bootstrap, 1) == expected
            second = penstock("dev", "--nodes", "3", "--data-dir", folder)
            assert second.code == 1
            assert "runs already" in second.err
            stopped = penstock("dev", "stop", "--data-dir", folder)
            assert (stopped.code, stopped.err) == (0, "stopped node 1, 2, 3\n")
            assert running._child.wait(DEADLINE_S) == 0
        running._child.log.unlink()
    assert ports[0] == ports[1]
    assert penstock("dev", "stop", "--data-dir", folder).err == "no node was running\n"


def test_a_signal_that_comes_while_everything_has_stopped_changes_nothing(folder: Path) -> None:
    with dev(folder) as running:
        running.wait_to_say("try")
        running.send(signal.SIGTERM)
        wait_for("all to stop", lambda: not (folder / "dev.pid").exists(), timeout_s=DEADLINE_S, pause_s=0.001)
        while running._child.running():
            running.send(signal.SIGTERM)  # Python has still to end, without the handlers that it had
        assert running._child.wait(DEADLINE_S) == 0


def test_what_speaks_against_the_folder_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for command in (("kill", "1"), ("start", "1"), ("stop",)):
        said = penstock("dev", *command, "--data-dir", folder)
        assert said.code == 1
        assert "penstock dev --nodes 3" in said.err
    (folder / "node-1").mkdir()
    assert "holds a single node" in penstock("dev", "--nodes", "3", "--data-dir", folder).err
    (folder / "cluster.json").write_text(
        json.dumps({"cluster_id": "x", "port": 9092, "voters": 3, "nodes": [1, 2, 3], "overrides": {}})
    )
    assert penstock("dev", "kill", "9", "--data-dir", folder).code == 3
    assert "has 3 nodes, not 5" in penstock("dev", "--nodes", "5", "--data-dir", folder).err
    assert "listen on 9092" in penstock("dev", "--port", "9999", "--data-dir", folder).err
    assert "run it without --nodes" in penstock("dev", "--nodes", "1", "--data-dir", folder).err
    (folder / "cluster.json").write_text("{}")
    assert "not as `penstock dev` writes it" in penstock("dev", "stop", "--data-dir", folder).err


def test_a_taken_port_is_named_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = penstock("dev", "--nodes", "2", "--port", str(port), "--data-dir", tmp_path / "data")
    assert said.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said.err
    assert not (tmp_path / "data").exists()
    assert "choose a lower one" in penstock("dev", "--nodes", "9", "--port", "65530", "--data-dir", tmp_path / "d").err


def test_a_node_that_cannot_start_is_told_with_its_last_words(folder: Path) -> None:
    said = penstock("dev", "--nodes", "2", "--port", "0", "--data-dir", folder, "-c", "log.dirs=/proc/nowhere")
    assert said.code == 1
    assert said.err
    assert not [node_id for node_id in (1, 2) if NodeProcess(folder, node_id).pid]


def test_a_process_that_is_no_node_is_left_alone(tmp_path: Path) -> None:
    """The number in a pid file may belong to anybody by now."""
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        node = NodeProcess(tmp_path, 1)
        (tmp_path / "node-1.pid").write_text(f"{stranger.pid}\n")
        assert node.pid is None
        assert kill(node) is None
        assert stranger.poll() is None
        (tmp_path / "node-1.pid").write_text("not a number")
        assert node.pid is None
    finally:
        stranger.kill()
        stranger.communicate()
    assert command_line(os.getpid())
    wait_for("the stranger to be gone", lambda: not command_line(stranger.pid), timeout_s=DEADLINE_S)


def test_the_controllers_have_ports_of_their_own_which_the_cluster_keeps(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with dev(folder) as running:
        running.wait_to_say("try")
        running.send(signal.SIGINT)
        assert running.stop(signal.SIGTERM) == 0
    stopped = [folder / f"node-{node_id}" / ".kafka_cleanshutdown" for node_id in (1, 2, 3)]
    assert all(mark.exists() for mark in stopped), "two signals at once are one wish"
    kept = json.loads((folder / "cluster.json").read_text())["controller_ports"]
    assert not set(kept) & set(ephemeral_ports())
    assert f"CONTROLLER://127.0.0.1:{kept[1]}" in (folder / "node-2.properties").read_text()
    with socket.create_server(("127.0.0.1", kept[1])):
        for command in (("dev", "--nodes", "3"), ("dev", "start", "2")):
            said = penstock(*command, "--data-dir", folder)
            assert said.code == 1
            assert f"cannot listen on 127.0.0.1:{kept[1]}, the controller's port of node 2" in said.err
    assert not list(folder.glob("*.pid")), "nothing was started"


def test_what_was_set_for_the_nodes_only_their_owner_reads(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    create(folder, nodes=3, port=0, overrides={"delegation.token.secret.key": "hush"})
    telling = [path for path in folder.rglob("*") if path.is_file() and b"hush" in path.read_bytes()]
    assert len(telling) == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in telling} == {0o600}


def test_a_cluster_of_an_earlier_release_keeps_the_ports_that_it_knows_its_controllers_by(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(
        json.dumps({"cluster_id": "x", "port": 9092, "voters": 3, "nodes": [1, 2, 3], "overrides": {}})
    )
    cluster = find(tmp_path)
    assert cluster is not None
    assert cluster.controller_ports == [19_092, 19_093, 19_094]
