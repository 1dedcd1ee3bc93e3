"""`penstock dev`: it starts with nothing, says where it is, stops cleanly, and explains what keeps it from starting."""

from __future__ import annotations

import json
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from penstock.cli.dev_ports import ephemeral_ports
from tests.cli.command import Running, penstock
from tests.compat.processes import free_ports
from tests.patience import within

ADDRESS = r"bootstrap\s+(127\.0\.0\.1:\d+)"
METRICS = r"metrics\s+(http://127\.0\.0\.1:\d+)/metrics"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / "log") as node:
        address = node.wait_to_say(ADDRESS)[1]
        node.wait_to_say("try")
        assert penstock("topic", "create", "kept", "-b", address).code == 0
        assert node.stop(number) == 0
        assert "Traceback" not in node.words
    assert (tmp_path / "data" / "node-1" / ".kafka_cleanshutdown").exists()


def test_an_open_node_loads_nothing_of_certificates(tmp_path: Path) -> None:
    with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / "log") as node:
        node.wait_to_say("try")
        assert "cryptography" not in Path(f"/proc/{node.pid}/maps").read_text()
    assert not (tmp_path / "data" / "security").exists()


def test_data_outlives_the_node(tmp_path: Path) -> None:
    for expected in (["kept"], ["kept"]):
        with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / "log") as node:
            address = node.wait_to_say(ADDRESS)[1]
            penstock("topic", "create", "kept", "--if-not-exists", "-b", address)
            topics = penstock("topic", "list", "--format", "json", "-b", address).data
            assert [topic["name"] for topic in topics] == expected
            assert node.stop() == 0
        (tmp_path / "log").unlink()


def test_an_ephemeral_node_leaves_nothing(tmp_path: Path) -> None:
    with Running("dev", "--port", "0", "--ephemeral", log=tmp_path / "log") as node:
        directory = Path(node.wait_to_say(r"data\s+(\S+)")[1])
        assert (directory / "node-1" / "meta.properties").exists()
        assert node.stop() == 0
    assert not directory.exists()


def test_its_metrics_are_where_it_says(tmp_path: Path) -> None:
    with Running("dev", "--port", "0", "--ephemeral", log=tmp_path / "log") as node:
        base = node.wait_to_say(METRICS)[1]
        with urllib.request.urlopen(f"{base}/readyz", timeout=within(10)) as reply:
            assert reply.status == 200
        with urllib.request.urlopen(f"{base}/metrics", timeout=within(10)) as reply:
            assert b"kafka_server_replicamanager_partitioncount" in reply.read()


def test_a_taken_admin_port_gives_way_to_a_free_one(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Running("dev", "--port", port, "--data-dir", tmp_path / "1", log=tmp_path / "log1") as node:
        usual = node.wait_to_say(METRICS)[1]
        assert node.stop() == 0
    again = ("dev", "--port", port, "--data-dir", tmp_path / "2")
    with (
        socket.create_server(("127.0.0.1", int(usual.rpartition(":")[2]))),
        Running(*again, log=tmp_path / "log2") as node,
    ):
        assert node.wait_to_say(METRICS)[1] != usual
        assert node.stop() == 0


def test_a_second_node_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / "log") as node:
        node.wait_to_say(ADDRESS)
        second = penstock("dev", "--port", "0", "--data-dir", tmp_path / "data")
        assert (second.code, second.out) == (1, "")
        assert re.search(r"data/node-1 is in use by another process", second.err)
        assert node.stop() == 0


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = penstock("dev", "--port", port, "--data-dir", tmp_path / "data")
    assert (said.code, said.out) == (1, "")
    assert said.err == f"penstock: cannot listen on 127.0.0.1:{port}: Address already in use; choose with --port\n"


def test_the_controller_has_a_port_of_its_own_that_is_kept_and_gives_way_if_it_is_taken(tmp_path: Path) -> None:
    data, kept = tmp_path / "data", []
    for life in range(3):
        (port,) = free_ports(1)
        taken = kept[-1] if life == 2 else port - 10_000 if port + 10_000 > 65_535 else port + 10_000
        with (
            socket.create_server(("127.0.0.1", taken)),
            Running("dev", "--port", str(port), "--data-dir", data, log=tmp_path / f"log{life}") as node,
        ):
            node.wait_to_say("try")
            kept.append(json.loads((data / "dev.json").read_text())["controller_port"])
            socket.create_connection(("127.0.0.1", kept[-1]), timeout=within(10)).close()
            assert node.stop() == 0
    assert kept[0] == kept[1] != kept[2]
    assert not set(kept) & set(ephemeral_ports())


def test_every_bad_property_is_named_at_once(tmp_path: Path) -> None:
    said = penstock(
        "dev", "--port", "0", "--data-dir", tmp_path, "-c", "log.segment.byte=1", "-c", "num.partitions=some"
    )
    assert said.code == 1
    assert "log.segment.byte is not a property; did you mean log.segment.bytes?" in said.err
    assert "num.partitions" in said.err


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = penstock("dev", "--port", "0", "--data-dir", tmp_path / "file" / "data")
    assert said.code == 1
    assert str(tmp_path / "file") in said.err


def test_a_directory_and_ephemeral_exclude_each_other(tmp_path: Path) -> None:
    said = penstock("dev", "--data-dir", tmp_path, "--ephemeral")
    assert said.code == 2
    assert "exclude each other" in said.err


def test_properties_given_by_hand_are_in_force(tmp_path: Path) -> None:
    with Running("dev", "--port", "0", "--ephemeral", "-c", "num.partitions=7", log=tmp_path / "log") as node:
        address = node.wait_to_say(ADDRESS)[1]
        penstock("topic", "create", "wide", "-b", address)
        (found,) = penstock("topic", "list", "--format", "json", "-b", address).data
        assert found["partitions"] == 7
