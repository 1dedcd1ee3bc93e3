"""`penstock dev --secure`: one command, and clients of every make get in by its files, and nobody without them."""

from __future__ import annotations

import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from penstock.cli.dev_processes import NodeProcess, kill
from penstock.model.config import parse_properties
from tests.cli.command import Running, penstock
from tests.patience import within

BOOTSTRAP = r"bootstrap\s+(\S+)"


def dev(folder: Path, *more: str) -> Running:
    (folder.parent / "dev.log").unlink(missing_ok=True)  # what an earlier one said is not waited for
    return Running("dev", "--secure", "--port", "0", "--data-dir", folder, *more, log=folder.parent / "dev.log")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder that commands look into by themselves. No process outlives a test that failed."""
    folder = tmp_path / ".penstock"
    yield folder
    for node_id in range(1, 5):
        kill(NodeProcess(folder, node_id))


def librdkafka(folder: Path, **more: object) -> dict[str, object]:
    lines = (folder / "security" / "admin.librdkafka").read_text().splitlines()
    return {"log_level": 0, **dict(line.split("=", 1) for line in lines), **more}


def round_trip(folder: Path, topic: str, value: bytes) -> None:
    producer = Producer(librdkafka(folder))
    producer.produce(topic, value)
    assert producer.flush(within(30)) == 0
    consumer = Consumer(librdkafka(folder, **{"group.id": f"g-{topic}", "auto.offset.reset": "earliest"}))
    consumer.subscribe([topic])
    try:
        (record,) = consumer.consume(1, timeout=within(30))
        assert record.error() is None, record.error()
        assert record.value() == value
    finally:
        consumer.close()


def refused(**settings: object) -> bool:
    try:
        AdminClient({"socket.timeout.ms": 2000, "log_level": 0, **settings}).list_topics(timeout=3)
    except KafkaException:
        return True
    return False


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.timeout(300)
def test_three_nodes_are_secured_and_stay_so(folder: Path, tmp_path: Path) -> None:
    with dev(folder, "--nodes", "3") as running:
        bootstrap = running.wait_to_say(BOOTSTRAP)[1]
        running.wait_to_say("try")
        security = folder / "security"
        for path in (security / "ca.pem", security / "admin.properties", security / "admin.librdkafka"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert str(path) in running.words
        assert re.search("SHA-256 ([0-9A-F]{2}:){31}", running.words)
        password = librdkafka(folder)["sasl.password"]
        assert str(password) not in running.words

        # Our own commands find the file by themselves, for its addresses.
        assert penstock("topic", "create", "t", "-p", "3", "-b", bootstrap, cwd=tmp_path).code == 0
        (topic,) = penstock("topic", "describe", "t", "--format", "json", "-b", bootstrap, cwd=tmp_path).data
        assert [len(partition["replicas"]) for partition in topic["partitions"]] == [3, 3, 3]
        listed = penstock("topic", "list", "--format", "json", "--data-dir", folder)
        assert [topic["name"] for topic in listed.data] == ["t"]
        round_trip(folder, "t", b"one")

        # A token that one node made is a login at every node.
        token = tmp_path / "token.properties"
        assert penstock("token", "create", "--client-config-out", token, "-b", bootstrap, cwd=tmp_path).code == 0
        for address in bootstrap.split(","):
            assert penstock("topic", "list", "-b", address, "--client-config", token).code == 0
        secret = parse_properties((security / "secrets.properties").read_text())["delegation.token.secret.key"]
        for path in folder.glob("node-*.*"):
            assert secret.encode() not in path.read_bytes(), path

        # Nobody gets in without a login, nor with a wrong one, nor without TLS.
        assert refused(**librdkafka(folder, **{"sasl.password": "wrong"}))
        assert refused(**{"bootstrap.servers": bootstrap})
        assert refused(
            **{"bootstrap.servers": bootstrap, "security.protocol": "SSL", "ssl.ca.location": str(security / "ca.pem")}
        )
        stranger = penstock("topic", "list", "-b", bootstrap, "-X", "request_timeout_ms=2000",
                            "-X", "default_api_timeout_ms=3000", cwd=folder)  # fmt: skip
        assert stranger.code != 0

        before = files_in(security)
        assert running.stop(signal.SIGINT) == 0

    with dev(folder) as running:
        assert running.wait_to_say(BOOTSTRAP)[1] == bootstrap
        running.wait_to_say("try")
        assert files_in(security) == before
        round_trip(folder, "t", b"one")
        assert penstock("topic", "list", "--client-config", token).code == 0

        added = penstock("dev", "start", "4", "--data-dir", folder)
        assert added.code == 0, added.err
        every = added.err.split()[-3]
        assert every.count(",") == 3
        assert added.err.endswith(f"penstock cluster partitions balance -b {every} --data-dir {folder}\n")
        brokers = penstock("cluster", "brokers", "--format", "json", "-b", every, cwd=tmp_path).data
        assert len(brokers) == 4


def test_a_single_node_is_secured_and_keeps_its_password_on_another_port(folder: Path, tmp_path: Path) -> None:
    with dev(folder) as running:
        bootstrap = running.wait_to_say(BOOTSTRAP)[1]
        running.wait_to_say("try")
        assert penstock("topic", "create", "t", "-b", bootstrap, cwd=tmp_path).code == 0
        password = librdkafka(folder)["sasl.password"]
        assert running.stop() == 0
    # As an earlier release left it: the secret comes with the next start.
    (folder / "security" / "secrets.properties").unlink()
    # The folder is a secured one, whether it is said or not.
    with Running("dev", "--port", "0", "--data-dir", folder, log=tmp_path / "again.log") as running:
        running.wait_to_say("try")
        settings = librdkafka(folder)
        assert settings["sasl.password"] == password
        assert settings["bootstrap.servers"] in running.words
        address = str(settings["bootstrap.servers"])
        made = penstock("token", "create", "--format", "json", "-b", address, cwd=tmp_path)
        assert made.data["owner"] == "User:admin"
        round_trip(folder, "t", b"one")
        assert refused(**{"bootstrap.servers": settings["bootstrap.servers"]})


def test_an_open_folder_does_not_become_secured_by_a_flag(tmp_path: Path) -> None:
    with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / "log") as running:
        running.wait_to_say("try")
        assert running.stop() == 0
    said = penstock("dev", "--secure", "--port", "0", "--data-dir", tmp_path / "data")
    assert said.code == 1
    assert "was made without --secure" in said.err


def test_listeners_of_ones_own_and_too_many_nodes_do_not_go_with_it(tmp_path: Path) -> None:
    said = penstock("dev", "--secure", "-c", "listeners=PLAINTEXT://:0", "--data-dir", tmp_path / "data")
    assert said.code == 1
    assert "--secure has its own" in said.err
    said = penstock("dev", "--secure", "--nodes", "17", "--port", "0", "--data-dir", tmp_path / "data")
    assert said.code == 1
    assert "nodes 1 to 16" in said.err


def test_what_nodes_are_told_has_no_password(folder: Path) -> None:
    with dev(folder, "--nodes", "1") as running:
        running.wait_to_say("try")
        password = str(librdkafka(folder)["sasl.password"]).encode()
        kept = {name for name, data in files_in(folder).items() if password in data}
        assert kept == {"security/admin.properties", "security/admin.librdkafka"}


DIALLING = (
    ("topic", "list"),
    ("topic", "describe", "orders"),
    ("produce", "orders"),
    ("consume", "orders", "-n", "1"),
    ("group", "list"),
    ("txn", "list"),
    ("cluster", "info"),
    ("cluster", "health"),
    ("cluster", "quorum"),
    ("cluster", "partitions", "list"),
    ("cluster", "config", "list"),
    ("doctor",),
    ("user", "list"),
    ("acl", "list"),
    ("quota", "list"),
    ("token", "list"),
    ("pipeline", "list"),
    ("bench", "consume", "--quick"),
)
AGENT = """
name = "finder"
bootstrap = "{bootstrap}"
[inputs.lines]
type = "exec"
command = ["echo", "brought"]
restart = "never"
topic = "orders"
"""


@pytest.mark.timeout(240)
def test_every_command_that_dials_finds_the_file_beside_it(folder: Path, tmp_path: Path) -> None:
    with dev(folder) as running:
        bootstrap = running.wait_to_say(BOOTSTRAP)[1]
        running.wait_to_say("try")
        there = ("-b", bootstrap)
        assert penstock("topic", "create", "orders", "-p", "1", *there, cwd=tmp_path).code == 0
        for command in DIALLING:
            said = penstock(*command, *there, cwd=tmp_path, stdin="one\n" if command[0] == "produce" else "")
            assert said.code == 0, (command, said.err)
        (tmp_path / "agent.toml").write_text(AGENT.format(bootstrap=bootstrap))
        assert penstock("agent", "run", "-c", "agent.toml", "--quiet", cwd=tmp_path).code == 0
        read = penstock("consume", "orders", "-n", "2", "-f", "text", *there, cwd=tmp_path)
        assert read.out.split() == ["one", "brought"]
        # Where there is none, nobody gets in.
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        said = penstock("topic", "list", *there, "-X", "default_api_timeout_ms=2000", cwd=elsewhere)
        assert said.code == 5, said
        assert running.stop(signal.SIGINT) == 0
