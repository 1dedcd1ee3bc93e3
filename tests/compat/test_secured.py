"""Java takes the files of a secured cluster as they are: clients those of the first user, a broker those of a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.dev_cluster import _free_base as free_base
from penstock.testing import EmbeddedBroker, broker
from tests.cli.command import penstock
from tests.compat.apache import jars
from tests.compat.apache.tools import try_tool
from tests.compat.processes import Child, wait_for

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker({"auto.create.topics.enable": False}, secure=True) as running:
        yield running


def tool(secured: EmbeddedBroker, name: str, *arguments: str, stdin: str | None = None) -> str:
    config = ("--bootstrap-server", secured.bootstrap_servers, "--command-config", str(secured.client_files.java))
    outcome = try_tool(name, *config, *arguments, stdin=stdin)
    assert outcome.returncode == 0, outcome
    return outcome.stdout


def test_javas_tools_get_in_by_the_file(secured: EmbeddedBroker) -> None:
    tool(secured, "kafka-topics", "--create", "--topic", "t", "--partitions", "1")
    tool(secured, "kafka-console-producer", "--topic", "t", stdin="one\n")
    read = tool(secured, "kafka-console-consumer", "--topic", "t", "--from-beginning", "--max-messages", "1")
    assert read == "one\n"


def test_and_not_without_it(secured: EmbeddedBroker) -> None:
    outcome = try_tool("kafka-topics", "--list", "--bootstrap-server", secured.bootstrap_servers, timeout_s=120)
    assert outcome.returncode != 0


@pytest.mark.timeout(300)
def test_apache_kafka_runs_from_a_directory_of_server_init(tmp_path: Path) -> None:
    """Properties, certificates and the snapshot with the first user are Kafka's own formats."""
    port = free_base(3)
    assert penstock("server", "init", "--secure", "--dir", tmp_path, "--node", f"1=localhost:{port}").code == 0
    admin = tmp_path / "security" / "admin.properties"
    config = str(tmp_path / "node-1" / "server.properties")
    command = ["java", "-Xmx512m", "-cp", jars.broker_class_path(), "kafka.Kafka", config]
    kafka = Child(command, tmp_path / "kafka.log")
    try:
        wait_for(
            "Apache Kafka to let admin in",
            lambda: penstock("topic", "create", "t", "--if-not-exists", "--client-config", admin).code == 0,
            timeout_s=120,
        )
        assert penstock("produce", "t", "--client-config", admin, stdin="one\n").code == 0
        read = penstock("consume", "t", "-o", "start", "-n", "1", "-f", "text", "--client-config", admin)
        assert read.out == "one\n"
    finally:
        kafka.kill()
