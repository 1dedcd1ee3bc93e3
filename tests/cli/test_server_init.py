"""`penstock server init --secure`: directories that were made offline run as a cluster, wherever they are copied to."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.cli.dev_cluster import _free_base as free_base
from penstock.model.config import parse_properties
from tests.cli.command import Running, penstock


@pytest.mark.timeout(300)
def test_three_hosts_come_up_from_their_directories_and_admin_gets_in(tmp_path: Path) -> None:
    made = tmp_path / "made"
    first = free_base(9)
    nodes = [f"{node_id}=localhost:{first + 3 * (node_id - 1)}" for node_id in (1, 2, 3)]
    told = penstock(
        "server", "init", "--secure", "--dir", made, *(word for node in nodes for word in ("--node", node)),
        "--format", "json",
    ).data  # fmt: skip
    assert [node["controller"] for node in told["nodes"]] == [True, True, True]
    assert told["security"]["admin"] == str(made / "security" / "admin.properties")
    with ExitStack() as stack:
        running = []
        for node in told["nodes"]:
            config = Path(node["directory"]) / "server.properties"
            log = tmp_path / f"node-{node['node_id']}.log"
            running.append(stack.enter_context(Running("server", "start", "--config", config, log=log)))
        for node in running:
            node.wait_to_say("is ready on")
        admin = ("--client-config", told["security"]["admin"])
        assert penstock("topic", "create", "t", "-p", "3", "-r", "3", *admin).code == 0
        assert penstock("produce", "t", *admin, stdin="one\n").code == 0
        assert penstock("consume", "t", "-o", "start", "-n", "1", "-f", "text", *admin).out == "one\n"
        assert len(penstock("cluster", "brokers", "--format", "json", *admin).data) == 3
        token = tmp_path / "token.properties"
        assert penstock("token", "create", "--client-config-out", token, *admin).code == 0
        assert penstock("topic", "list", "--client-config", token).code == 0
    _check_the_secret(made)


def _check_the_secret(made: Path) -> None:
    """It is the same for all nodes, and in no file that is not there for it."""
    kept = (made / "security" / "secrets.properties").read_bytes()
    places = {path for path in made.rglob("*") if path.is_file() and path.read_bytes() == kept}
    assert places == {made / place / "secrets.properties" for place in ("security", "node-1", "node-2", "node-3")}
    assert {path.stat().st_mode & 0o777 for path in places} == {0o600}
    secret = parse_properties(kept.decode())["delegation.token.secret.key"].encode()
    assert [
        path for path in made.rglob("*") if path.is_file() and secret in path.read_bytes() and path not in places
    ] == []


def test_a_directory_may_be_meant_for_another_path(tmp_path: Path) -> None:
    home, made = tmp_path / "var" / "penstock", tmp_path / "made"
    port = free_base(3)
    said = penstock("server", "init", "--secure", "--dir", made, "--node", f"1=localhost:{port}", "--home", home)
    assert said.code == 0
    assert f"penstock server start --config {home}/server.properties" in said.err
    assert "SHA-256" in said.err
    home.parent.mkdir()
    shutil.copytree(made / "node-1", home)
    shutil.rmtree(made / "node-1")
    with Running("server", "start", "--config", home / "server.properties", log=tmp_path / "log") as node:
        node.wait_to_say("is ready on")
        admin = ("--client-config", made / "security" / "admin.properties")
        assert penstock("topic", "create", "t", *admin).code == 0


@pytest.mark.parametrize("node", ["kafka-1", "1=kafka-1:x", "1=a b"])
def test_what_is_no_node_is_a_mistake_of_the_command(tmp_path: Path, node: str) -> None:
    said = penstock("server", "init", "--dir", tmp_path / "made", "--node", node)
    assert said.code == 2
    assert "is not ID=HOST" in said.err
    assert not (tmp_path / "made").exists()
