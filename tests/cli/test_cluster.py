"""`penstock cluster …` and `penstock doctor`: what they say of a cluster that is well, and of others."""

from __future__ import annotations

import asyncio
import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock import Admin, blocking
from penstock.client.admin.configs import ConfigResource
from tests.cli.command import Running, penstock
from tests.compat.processes import free_ports


def test_info_names_the_controller_and_its_epoch(bootstrap: str) -> None:
    data = penstock("cluster", "info", "--format", "json", "-b", bootstrap).data
    assert len(data["cluster_id"]) == 22
    assert (data["controller"], data["controller_epoch"]) == (1, 1)
    host, _, port = bootstrap.partition(":")
    assert data["brokers"] == [{"id": 1, "host": host, "port": int(port), "rack": None, "fenced": False}]
    assert data["features"]["metadata.version"] > 0
    text = penstock("cluster", "info", "-b", bootstrap).out
    assert "controller   1 (epoch 1)" in text
    assert bootstrap in text


def test_brokers_have_disks(bootstrap: str) -> None:
    (only,) = penstock("cluster", "brokers", "--format", "json", "-b", bootstrap).data
    (directory,) = only["log_dirs"]
    assert directory["error"] is None
    assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
    assert "online" in penstock("cluster", "brokers", "-b", bootstrap).out


def test_the_quorum_has_voters_with_lag(bootstrap: str) -> None:
    data = penstock("cluster", "quorum", "--format", "json", "-b", bootstrap).data
    assert (data["leader"], data["epoch"]) == (1, 1)
    assert [(voter["id"], voter["lag"]) for voter in data["voters"]] == [(1, 0)]
    assert "voter" in penstock("cluster", "quorum", "-b", bootstrap).out


def test_features_are_shown_and_raised_to_what_all_brokers_know(bootstrap: str) -> None:
    with blocking.Admin(bootstrap_servers=bootstrap) as admin:
        admin.update_features({"eligible.leader.replicas.version": 0}, downgrade="safe")
    rows = penstock("cluster", "features", "--format", "json", "-b", bootstrap).data
    assert {row["name"]: row["finalized"] for row in rows}["eligible.leader.replicas.version"] in (0, None)
    said = penstock("cluster", "features", "upgrade", "metadata.version", "--yes", "-b", bootstrap)
    assert (said.code, said.err) == (0, "every feature is at its highest level\n")
    said = penstock("cluster", "features", "upgrade", "--yes", "-b", bootstrap)
    assert (said.code, said.err) == (0, "raised eligible.leader.replicas.version from 0 to 1\n")


def test_a_feature_that_nobody_knows_is_refused_with_those_there_are(bootstrap: str) -> None:
    said = penstock("cluster", "features", "upgrade", "telepathy", "--yes", "-b", bootstrap)
    assert said.code == 1
    assert "no broker knows the feature 'telepathy'; there are eligible.leader.replicas.version, group" in said.err


def test_health_of_a_node_that_is_well_is_exit_code_0(bootstrap: str) -> None:
    well = penstock("cluster", "health", "--format", "json", "-b", bootstrap)
    assert (well.code, well.data["healthy"], well.data["reasons"]) == (0, True, [])


def test_watching_ends_when_all_is_well(bootstrap: str) -> None:
    said = penstock("cluster", "health", "--watch", "--exit-when-healthy", "-b", bootstrap)
    assert (said.code, said.out) == (0, "healthy\n")
    assert penstock("cluster", "health", "--exit-when-healthy", "-b", bootstrap).code == 2


def test_defaults_of_brokers_are_set_read_and_taken_back(bootstrap: str) -> None:
    config = ("cluster", "config")
    assert penstock(*config, "get", "log.retention.ms", "-b", bootstrap).code == 3
    assert penstock(*config, "set", "log.retention.ms=600000", "-b", bootstrap).err == (
        "changed log.retention.ms of all brokers\n"
    )
    assert penstock(*config, "get", "log.retention.ms", "-b", bootstrap).out == "600000\n"
    found = penstock(*config, "list", "--broker", "1", "--format", "json", "-b", bootstrap).data
    assert found["log.retention.ms"] == {"value": "600000", "source": "cluster", "read_only": False}
    assert "log.retention.ms" in penstock(*config, "list", "-b", bootstrap).out
    everything = penstock(*config, "list", "--broker", "1", "--all", "--format", "json", "-b", bootstrap).data
    assert everything["num.partitions"]["source"] in ("default", "static")
    assert penstock(*config, "set", "-d", "log.retention.ms", "-b", bootstrap).code == 0
    assert penstock(*config, "get", "log.retention.ms", "-b", bootstrap).code == 3
    assert penstock(*config, "set", "log.cleanup.policy=soon", "--dry-run", "-b", bootstrap).code == 1
    assert penstock(*config, "set", "-b", bootstrap).code == 2


def test_a_property_that_nobody_knows_is_refused_with_the_one_that_was_meant(bootstrap: str) -> None:
    config = ("cluster", "config")
    for change in (("log.retention.mss=5",), ("-d", "log.retention.mss"), ("log.retention.mss=5", "--broker", "1")):
        said = penstock(*config, "set", *change, "-b", bootstrap)
        assert said.code == 2
        assert "log.retention.mss is not a property; did you mean log.retention.ms?" in said.err
    said = penstock(*config, "set", "quite.another=5", "log.retention.mss=5", "-b", bootstrap)
    assert "quite.another is not a property\nlog.retention.mss is not" in said.err
    assert "log.retention.mss" not in penstock(*config, "list", "-b", bootstrap).out, "nothing was stored"
    for where in ((), ("--broker", "1")):
        said = penstock(*config, "get", "log.retentio.ms", *where, "-b", bootstrap)
        assert said.code == 3
        assert said.err == "penstock: log.retentio.ms is not a property; did you mean log.retention.ms?\n"
    for known in (
        "listener.name.plaintext.max.connections=5",
        "super.users=User:me",
        "leader.replication.throttled.rate=5",
    ):
        assert penstock(*config, "set", known, "--dry-run", "--broker", "1", "-b", bootstrap).code == 0


def test_a_property_that_only_the_cluster_knows_can_be_changed_and_taken_back(bootstrap: str) -> None:
    """Brokers keep what a plug-in of theirs may read, as Apache Kafka does; other clients set such names."""

    async def set_by_another() -> None:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            (await admin.alter_configs({ConfigResource.cluster(): {"plugin.size": "5"}})).checked()

    asyncio.run(set_by_another())
    assert penstock("cluster", "config", "set", "plugin.size=6", "-b", bootstrap).code == 0
    assert penstock("cluster", "config", "set", "-d", "plugin.size", "-b", bootstrap).code == 0
    assert penstock("cluster", "config", "set", "-d", "plugin.size", "-b", bootstrap).code == 2


def test_the_doctor_finds_nothing_wrong_with_a_node_that_is_well(bootstrap: str) -> None:
    said = penstock("doctor", "--format", "json", "-b", bootstrap)
    assert said.code == 0
    assert (said.data["reachable"], said.data["healthy"]) == (True, True)
    checks = [each["check"] for each in said.data["checks"]]
    assert checks == [
        "bootstrap", "cluster", "advertised", "security", "versions", "health", "clock", "disks", "transactions",
        "groups",
    ]  # fmt: skip
    assert penstock("doctor", "-b", bootstrap).out.endswith("all is well\n")


def test_the_doctor_explains_an_address_that_nobody_reaches(tmp_path: Path) -> None:
    port, other = free_ports(2)
    advertised = f"advertised.listeners=PLAINTEXT://localhost:{other}"
    with Running("dev", "--port", str(port), "--ephemeral", "-c", advertised, log=tmp_path / "log") as node:
        node.wait_to_say("try ")
        said = penstock("doctor", "--format", "json", "-b", f"127.0.0.1:{port}")
    assert said.code == 10
    (found,) = said.data["findings"]
    assert found["kind"] == "advertised_address"
    assert f"localhost:{other}" in found["what"]
    assert "advertised.listeners" in found["try"]


@pytest.fixture
def web() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_the_doctor_knows_a_web_server(web: str) -> None:
    said = penstock("doctor", "--format", "json", "-b", web)
    assert said.code == 5
    assert [found["kind"] for found in said.data["findings"]] == ["bootstrap_http"]


@pytest.mark.parametrize(
    ("address", "kind"), [("127.0.0.1:1", "bootstrap_refused"), ("nowhere.invalid:9092", "bootstrap_name")]
)
def test_the_doctor_tells_a_wrong_name_from_a_closed_port(address: str, kind: str) -> None:
    said = penstock("doctor", "--format", "json", "-b", address)
    assert said.code == 5
    assert (said.data["reachable"], [found["kind"] for found in said.data["findings"]]) == (False, [kind])
    text = penstock("doctor", "-b", address)
    assert text.code == 5
    assert "\n  why  " in text.out
    assert "\n  try  " in text.out


@pytest.fixture
def tls() -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(peer, server_side=True).close()
                except OSError:
                    peer.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Somebody who says the same to whatever is asked, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(100)
                    peer.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


TLS_ALERT = bytes.fromhex("15030300020250")
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"


def test_the_doctor_knows_tls_when_it_meets_it(tls: str) -> None:
    said = penstock("doctor", "--format", "json", "-b", tls)
    assert said.code == 5
    assert [found["kind"] for found in said.data["findings"]] == ["bootstrap_tls"]


@pytest.mark.parametrize(
    "command", [("topic", "list"), ("topic", "describe", "t"), ("group", "list"), ("consume", "t"), ("produce", "t")]
)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            TLS_ALERT,
            "TLS, and was dialled without: set security.protocol to SSL or SASL_SSL, or dial a plaintext listener",
        ),
        (BAD_REQUEST, "HTTP, not Kafka"),
    ],
    ids=["TLS", "HTTP"],
)
def test_a_port_of_another_kind_is_named_with_a_way_to_find_out(
    answer: bytes, words: str, command: tuple[str, ...]
) -> None:
    with answering(answer) as address:
        said = penstock(*command, "-b", address)
    asks = f"is this a Kafka port? `penstock doctor -b {address}` finds out"
    assert (said.code, said.err) == (5, f"penstock: {address}: it answers in {words}; {asks}\n")


def test_a_port_that_hangs_up_is_asked_about_too(tls: str) -> None:
    """OpenSSL does so when it is spoken to in another language."""
    said = penstock("topic", "list", "-b", tls)
    assert said.code == 5
    assert "is this a listener with TLS? Then set security.protocol to SSL or SASL_SSL" in said.err


@pytest.mark.parametrize(("answer", "kind"), [(TLS_ALERT, "bootstrap_tls"), (BAD_REQUEST, "bootstrap_http")])
def test_the_doctor_knows_the_language_by_the_first_bytes(answer: bytes, kind: str) -> None:
    with answering(answer) as address:
        said = penstock("doctor", "--format", "json", "-b", address)
    assert [found["kind"] for found in said.data["findings"]] == [kind]


def test_a_scheme_before_an_address_is_named_with_the_right_spelling() -> None:
    said = penstock("topic", "list", "-b", "http://localhost:9092")
    assert said.code == 2
    assert "write localhost:9092" in said.err


@pytest.mark.parametrize("command", [("info",), ("health",), ("brokers",), ("quorum",), ("config", "list")])
def test_a_cluster_that_is_not_there_is_exit_code_5(command: tuple[str, ...]) -> None:
    said = penstock("cluster", *command, "-b", "127.0.0.1:1")
    assert (said.code, said.out) == (5, "")
    assert "penstock dev" in said.err
