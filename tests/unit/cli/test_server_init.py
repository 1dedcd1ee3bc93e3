"""`penstock server init`: what is planned for which host, and what is on the disk then."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from penstock.cli.server_init import PlannedNode, make, node_properties, parse_node, plan_of
from penstock.model.config import BrokerSettings
from penstock.model.config.files import parse_properties
from penstock.protocol.disk.metadata_security import UserScramCredentialRecord
from penstock.server.quorum.snapshot_file import read_checkpoint
from penstock.storage.files import DiskFiles
from penstock.storage.meta_properties import read_meta_properties

THREE = [PlannedNode(node_id, f"kafka-{node_id}") for node_id in (1, 2, 3)]


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("1=kafka-1", PlannedNode(1, "kafka-1", 9092)),
        ("2=10.0.0.1:19092", PlannedNode(2, "10.0.0.1", 19092)),
        ("0=[::1]:9092", PlannedNode(0, "::1", 9092)),
    ],
)
def test_a_node_is_an_id_and_where_it_is_reached(text: str, node: PlannedNode) -> None:
    assert parse_node(text) == node


@pytest.mark.parametrize("text", ["kafka-1", "x=kafka", "1=", "1=a b", "1=a:b", "1=a:0", "1=a:65534", "3000000000=a"])
def test_what_is_no_node_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not ID=HOST|no id|cannot be a port"):
        parse_node(text)


def test_nodes_of_one_host_need_ports_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shares a port"):
        plan_of(tmp_path, [PlannedNode(1, "a"), PlannedNode(2, "a", 9094)], secure=True)
    with pytest.raises(ValueError, match="same id"):
        plan_of(tmp_path, [PlannedNode(1, "a"), PlannedNode(1, "b")], secure=True)
    plan_of(tmp_path, [PlannedNode(1, "a"), PlannedNode(2, "a", 9095)], secure=True)


@pytest.mark.parametrize(("nodes", "voters"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (9, 5)])
def test_an_odd_number_of_nodes_votes(tmp_path: Path, nodes: int, voters: int) -> None:
    plan = plan_of(tmp_path, [PlannedNode(node_id, f"h{node_id}") for node_id in range(nodes)], secure=True)
    assert [node.node_id for node in plan.controllers] == list(range(voters))


def test_a_node_listens_everywhere_and_is_known_by_its_name(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, THREE, secure=True, home=Path("/var/lib/penstock"))
    told = node_properties(plan, THREE[1], "id")
    assert told["listeners"] == "CLIENTS://0.0.0.0:9092,REPLICATION://0.0.0.0:9094,CONTROLLER://0.0.0.0:9093"
    assert told["advertised.listeners"] == "CLIENTS://kafka-2:9092,REPLICATION://kafka-2:9094,CONTROLLER://kafka-2:9093"
    assert told["controller.quorum.bootstrap.servers"] == "kafka-1:9093,kafka-2:9093,kafka-3:9093"
    assert told["log.dirs"] == "/var/lib/penstock/data"
    assert told["penstock.admin.listener"] == "127.0.0.1:9644"
    assert told["ssl.keystore.location"] == "/var/lib/penstock/node.pem"
    assert told["super.users"] == "User:CN=node-1,O=id;User:CN=node-2,O=id;User:CN=node-3,O=id;User:admin"


def test_a_loopback_is_not_left(tmp_path: Path) -> None:
    node = PlannedNode(1, "127.0.0.1", 19092)
    told = node_properties(plan_of(tmp_path, [node], secure=True), node, "id")
    assert told["listeners"] == told["advertised.listeners"]


def test_each_node_has_all_it_needs_and_nothing_of_the_authorities(tmp_path: Path) -> None:
    cluster_id, secured = make(plan_of(tmp_path, THREE, secure=True))
    assert secured is not None
    for node in THREE:
        directory = tmp_path / f"node-{node.node_id}"
        has = sorted(path.name for path in directory.iterdir())
        assert has == ["ca.pem", "data", "node.pem", "secrets.properties", "server.properties"]
        assert stat.S_IMODE((directory / "data").stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / "node.pem").stat().st_mode) == 0o600
        settings = BrokerSettings.load(parse_properties((directory / "server.properties").read_text()))
        assert settings.log_dirs == (str(directory / "data"),)
        meta = read_meta_properties(DiskFiles(), str(directory / "data"))
        assert meta is not None
        assert (meta.cluster_id, meta.node_id) == (cluster_id, node.node_id)
        assert (directory / "ca.pem").read_bytes() == secured.directory.trusted.read_bytes()
    assert "bootstrap.servers=kafka-1:9092,kafka-2:9092,kafka-3:9092\n" in secured.admin.java.read_text()


def test_the_first_user_is_in_the_snapshot_that_the_cluster_starts_from(tmp_path: Path) -> None:
    make(plan_of(tmp_path, THREE, secure=True))
    path = tmp_path / "node-1" / "data" / "bootstrap.checkpoint"
    users = {
        (record.name, record.mechanism, record.iterations)
        for record in read_checkpoint(str(path), path.read_bytes()).records
        if isinstance(record, UserScramCredentialRecord)
    }
    assert users == {("admin", 1, 4096), ("admin", 2, 4096)}


def test_a_cluster_can_be_made_open_too(tmp_path: Path) -> None:
    cluster_id, secured = make(plan_of(tmp_path, THREE, secure=False))
    assert secured is None
    assert cluster_id
    assert sorted(path.name for path in (tmp_path / "node-1").iterdir()) == ["data", "server.properties"]
    assert not (tmp_path / "security").exists()


def test_a_node_that_is_added_is_a_broker_of_the_same_cluster(tmp_path: Path) -> None:
    cluster_id, secured = make(plan_of(tmp_path, THREE, secure=True))
    assert secured is not None
    password = secured.admin.password()
    before = (tmp_path / "node-1" / "server.properties").read_bytes()
    plan = plan_of(tmp_path, [PlannedNode(4, "kafka-4")], secure=True)
    assert make(plan)[0] == cluster_id
    told = parse_properties((tmp_path / "node-4" / "server.properties").read_text())
    assert told["process.roles"] == "broker"
    assert told["controller.quorum.bootstrap.servers"] == "kafka-1:9093,kafka-2:9093,kafka-3:9093"
    assert "User:CN=node-4,O=" in told["super.users"]
    assert not (tmp_path / "node-4/data/__cluster_metadata-0").exists()
    assert (tmp_path / "node-1" / "server.properties").read_bytes() == before
    assert secured.admin.password() == password
    assert "kafka-4:9092\n" in secured.admin.java.read_text()


def test_nothing_is_written_over_and_an_open_cluster_gets_no_secured_node(tmp_path: Path) -> None:
    make(plan_of(tmp_path, THREE, secure=False))
    with pytest.raises(ValueError, match="same id"):
        plan_of(tmp_path, [THREE[0]], secure=False)
    with pytest.raises(ValueError, match="without --secure"):
        plan_of(tmp_path, [PlannedNode(4, "kafka-4")], secure=True)
