"""`broker(secure=True)` and `cluster(secure=True)`: what the keywords and files that they give are good for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import Producer as Librdkafka
from confluent_kafka.admin import AdminClient

from penstock.blocking import Admin, Consumer, Producer
from penstock.certificates import (
    CertificateDirectory,
    Role,
    begin_rotation,
    finish_rotation,
    issue_client,
    leaf_of,
    renew,
    switch_rotation,
    write_issued,
)
from penstock.cli.connection import Connection
from penstock.client.errors import ClientError
from penstock.model.config.files import parse_properties
from penstock.operations.diagnosis.examine import examine
from penstock.testing import EmbeddedBroker, broker, cluster
from tests.patience import within


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as running:
        yield running


def test_our_clients_get_in_by_its_keywords(secured: EmbeddedBroker) -> None:
    with Admin(**secured.client_settings) as admin:
        admin.create_topic("ours", partitions=1)
    with Producer(**secured.client_settings) as producer:
        producer.send("ours", b"one").result()
    with Consumer("ours", group_id="g", offset_reset="earliest", **secured.client_settings) as consumer:
        assert next(iter(consumer)).value == b"one"


def test_other_clients_get_in_by_its_settings_and_files(secured: EmbeddedBroker) -> None:
    producer = Librdkafka(secured.librdkafka_settings)
    producer.produce("theirs", b"one")
    assert producer.flush(within(30)) == 0
    lines = secured.client_files.librdkafka.read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines) == secured.librdkafka_settings
    told = parse_properties(secured.client_files.java.read_text())
    assert told["bootstrap.servers"] == secured.bootstrap_servers
    assert told["ssl.truststore.location"] == str(secured.client_files.trusted)
    with Admin(client_config=str(secured.client_files.java)) as admin:
        assert "theirs" in [topic.name for topic in admin.topics()]


def test_nobody_else_does(secured: EmbeddedBroker) -> None:
    wrong = {**secured.librdkafka_settings, "sasl.password": "wrong", "log_level": "0"}
    with pytest.raises(KafkaException):
        AdminClient(wrong).list_topics(timeout=3)
    with (
        pytest.raises(ClientError),
        Admin(bootstrap_servers=secured.bootstrap_servers, default_api_timeout_ms=3_000) as admin,
    ):
        admin.topics()


def test_it_comes_back_on_its_port_with_its_user() -> None:
    with broker(secure=True) as running:
        before = running.client_settings
        with Admin(**before) as admin:
            admin.create_topic("t", partitions=1)
        running.restart()
        assert running.client_settings == before
        with Admin(**before) as admin:
            assert [topic.name for topic in admin.topics()] == ["t"]


def test_three_nodes_know_each_other_and_take_a_fourth() -> None:
    with cluster(nodes=3, secure=True) as running:
        with Admin(**running.client_settings) as admin:
            admin.create_topic("t", partitions=3, replication=3)
        running.wait_until_in_sync("t")
        running.kill(running.leader_of("t", 0))
        with Producer(**running.client_settings) as producer:
            producer.send("t", b"one", partition=0).result()
        added = running.add()
        with Admin(**running.client_settings) as admin:
            assert added in [each.id for each in admin.describe_cluster().brokers]
        assert running.client_files.trusted.exists()


def test_an_open_broker_has_addresses_and_no_files() -> None:
    with broker() as running:
        assert running.client_settings == {"bootstrap_servers": running.bootstrap_servers}
        assert running.librdkafka_settings == {"bootstrap.servers": running.bootstrap_servers}
        with pytest.raises(RuntimeError, match=r"broker\(secure=True\)"):
            _ = running.client_files


def test_the_doctor_reads_weak_settings_from_a_broker() -> None:
    weak = {"ssl.endpoint.identification.algorithm": ""}
    with broker(weak, secure=True) as running:
        found = asyncio.run(examine(Connection(running.bootstrap_servers, running.client_settings), 0))
        assert dict(found.checks)["security"] == "broker 1 has 1 weak setting"
        assert [each.kind for each in found.findings] == ["weak_setting"]
        assert "ssl.endpoint.identification.algorithm" in found.findings[0].what
        assert dict(found.checks)["certificate"].startswith(f"{running.bootstrap_servers} has CN=node-1,O=")


def test_the_authority_of_nodes_is_replaced_while_they_run() -> None:
    """After each step a node comes back and catches up, and clients with what they were given last get in."""
    with cluster(nodes=3, secure=True) as running:
        directory = CertificateDirectory(running.client_files.directory)
        old = directory.trusted.read_bytes()
        with Admin(**running.client_settings) as admin:
            admin.create_topic("t", partitions=3, replication=3)
        for node_id, step in enumerate((_begin, _switch, _renew, _finish), start=1):
            step(directory)
            # Nodes look at their files every ten seconds.
            running.advance(seconds=11)
            running.restart(1 + node_id % 3)
            running.wait_until_in_sync("t")
            with Producer(**running.client_settings) as producer:
                producer.send("t", step.__name__.encode()).result()
        outdated = directory.path / "old.pem"
        outdated.write_bytes(old)
        settings = {**running.client_settings, "cafile": str(outdated), "default_api_timeout_ms": 3_000}
        with pytest.raises(ClientError), Admin(**settings) as admin:
            admin.topics()


def _begin(directory: CertificateDirectory) -> None:
    begin_rotation(directory.open(Role.CLUSTER), now=datetime.now(UTC))
    directory.publish()


def _switch(directory: CertificateDirectory) -> None:
    switch_rotation(directory.open(Role.CLUSTER))


def _renew(directory: CertificateDirectory) -> None:
    authority = directory.open(Role.CLUSTER)
    for path in directory.issued_files():
        write_issued(renew(authority, leaf_of(path), now=datetime.now(UTC)), path, replace=True)


def _finish(directory: CertificateDirectory) -> None:
    finish_rotation(directory.open(Role.CLUSTER), directory.issued(Role.CLUSTER))
    directory.publish()


def test_a_listener_between_nodes_lets_in_nodes_and_no_clients(secured: EmbeddedBroker) -> None:
    """Not even those whom the clients' authority signed."""
    directory = CertificateDirectory(secured.client_files.directory)
    write_issued(issue_client(directory.open(Role.CLIENTS), "alice", now=datetime.now(UTC)), directory.client("alice"))
    clients, replication = secured.node.addresses
    assert clients == secured.bootstrap_servers

    def topics(certificate: Path | None, timeout_s: int) -> list[str]:
        own = (
            {} if certificate is None else dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), certificate)
        )
        settings = {"bootstrap.servers": replication, "security.protocol": "SSL", "log_level": 0}
        trust = {"ssl.ca.location": str(directory.trusted)}
        asked = AdminClient({**settings, **trust, **{name: str(path) for name, path in own.items()}})
        return list(asked.list_topics(timeout=within(timeout_s)).topics)

    assert isinstance(topics(directory.node(1), 20), list)
    for stranger in (None, directory.client("alice")):
        with pytest.raises(KafkaException):
            topics(stranger, 3)
