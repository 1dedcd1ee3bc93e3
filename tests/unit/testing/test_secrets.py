"""Passwords are planted in a secured broker and driven through all that speaks. Then they are looked for."""

from __future__ import annotations

import json
import logging
import stat
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.blocking import Admin, Producer
from penstock.cli.main import cli
from penstock.client.admin import Acl, ConfigResource, ScramPassword, ScramRemoval
from penstock.client.errors import ClientError
from penstock.testing import EmbeddedBroker, broker
from tests.patience import wait_for

BY_SCRAM, BY_PLAIN = "pl4nted-for-scram", "pl4nted-for-plain"
WRONG, KEY = "pl4nted-and-wrong", "pl4nted-for-a-key"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="node" password="{BY_PLAIN}" user_eve="{BY_PLAIN}";'
)
SETTINGS = {
    "listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": JAAS,
}


class Scene:
    """A broker to which everything was done, and all that it said meanwhile."""

    def __init__(self, running: EmbeddedBroker, audit: Path, logs: list[str], replies: list[str]) -> None:
        self.running, self.audit, self.logs, self.replies = running, audit, logs, replies
        own = running.client_settings["password"]
        self.secrets = (BY_SCRAM, BY_PLAIN, WRONG, KEY, own)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]

    def clean(self, text: str) -> bool:
        return not any(secret in text for secret in self.secrets)


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("secrets")
    audit, kept, logger = place / "audit.log", _Kept(), logging.getLogger("penstock")
    settings = {**SETTINGS, "penstock.audit.log.file": str(audit), "penstock.audit.allowed": "true"}
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(kept)
    try:
        with broker(settings, data_dir=str(place / "data"), secure=True) as running:
            replies = drive(running)
            yield Scene(running, audit, kept.lines, replies)
    finally:
        logger.removeHandler(kept)
        logger.setLevel(before)


def drive(running: EmbeddedBroker) -> list[str]:
    """Logins and requests, good and bad; gives what was answered."""
    said: list[str] = []
    ours = running.client_settings
    alice = {**ours, "username": "alice", "password": BY_SCRAM}
    eve = {**ours, "username": "eve", "password": BY_PLAIN, "sasl_mechanism": "PLAIN"}
    with Admin(**ours) as admin:
        admin.create_topic("orders", partitions=1, configs={"retention.ms": "60000"})
        admin.alter_scram_users([ScramPassword("alice", BY_SCRAM)]).checked()
        admin.create_acls([Acl("User:alice", "write", "topic", "orders")]).checked()
        node = ConfigResource.broker(admin.describe_cluster().brokers[0].id)
        secret = (
            "listener.name.clients.ssl.key.password",
            "of.some.plug.in",
            "listener.name.clients.plain.sasl.jaas.config",
        )
        said += [str(admin.alter_configs({node: {name: KEY}}).failed) for name in secret]
        said += [str(admin.describe_configs([each]).checked()) for each in (node, ConfigResource.cluster())]
        said.append(str(admin.describe_scram_users()))
    with Producer(**alice) as producer:
        producer.send("orders", b"one").result()
    said += [refused({**user, "password": WRONG}, "orders") for user in (alice, eve)]
    said += [refused(user, "not-hers") for user in (alice, eve)]
    return said


def refused(settings: dict[str, Any], topic: str) -> str:
    with pytest.raises(ClientError) as refusal, Admin(**settings, default_api_timeout_ms=5_000) as admin:
        admin.create_topic(topic, partitions=1)
    return f"{refusal.value} {refusal.value!r}"


def test_everything_was_driven(scene: Scene) -> None:
    denied_to = {
        ("User:alice", "CreateTopics", "not-hers", "NO_ACL"),
        ("User:eve", "CreateTopics", "not-hers", "NO_ACL"),
    }

    def denied() -> set[tuple[str, str, str, str]]:
        told = [e for e in scene.events() if e["result"] == "denied"]
        return {(e["principal"], e["api"], e["resource"]["name"], e["rule"]) for e in told}

    wait_for("failed logins", lambda: len([e for e in scene.events() if e["type"] == "login"]) >= 2, timeout_s=30)
    wait_for("what was denied", lambda: denied_to <= denied(), timeout_s=30)
    events = scene.events()
    failed = {(e["mechanism"], e["name"]) for e in events if e["type"] == "login"}
    assert failed == {("SCRAM-SHA-512", "alice"), ("PLAIN", "eve")}
    allowed = [e for e in events if e["result"] == "allowed" and e["principal"] == "User:alice"]
    assert "ALLOW WRITE on TOPIC LITERAL 'orders' to User:alice" in {e.get("acl") for e in allowed}
    changed = {(e["resource"]["type"], e["resource"]["name"], e["result"]) for e in events if e["type"] == "change"}
    assert {("TOPIC", "orders", "done"), ("USER", "alice", "done"), ("ACL", "orders", "done")} <= changed
    assert all(e["listener"] and e["address"] == "127.0.0.1" for e in events)


def test_no_denial_is_told_that_is_no_offence(scene: Scene) -> None:
    """The first of two ways (CREATE of the cluster) is not what a client is refused for."""
    assert not [e for e in scene.events() if e["result"] == "denied" and e["resource"]["type"] == "CLUSTER"]


def test_cve_2023_24619_no_secret_is_in_the_audit_file_or_a_log(scene: Scene) -> None:
    assert any("failed" in line and "alice" in line for line in scene.logs)
    assert scene.clean(scene.audit.read_text())
    assert [line for line in scene.logs if not scene.clean(line)] == []


def test_no_secret_is_answered(scene: Scene) -> None:
    assert any("sasl.jaas.config" in reply for reply in scene.replies)
    assert [reply for reply in scene.replies if not scene.clean(reply)] == []


def test_no_secret_is_in_the_metrics_which_tell_of_the_events(scene: Scene) -> None:
    with urllib.request.urlopen(f"{scene.running.admin_url}/metrics") as page:
        text = page.read().decode()
    assert scene.clean(text)
    assert 'penstock_audit_drops_total{reason="rate"}' in text
    assert 'penstock_audit_events_total{type="login"}' in text


def test_no_secret_is_in_a_file_that_need_not_hold_it(scene: Scene) -> None:
    data = Path(scene.running.data_dir)
    holders = data / "security"
    for path in sorted(data.rglob("*")):
        if not path.is_file() or holders in path.parents:
            continue
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        held = path.read_bytes().decode("latin-1")
        if "__cluster_metadata-0" in path.parts:
            held = held.replace(KEY, "")  # what is set by a request lies there, as in Kafka
        assert scene.clean(held), path


def test_no_secret_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "ssl.key.password": KEY,
        **SETTINGS,
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    for style in ("json", "text"):
        printed = CliRunner().invoke(
            cli, ["server", "config", "print", "--all", "--config", str(path), "--format", style]
        )
        assert printed.exit_code == 0, printed.output
        assert "ssl.key.password" in printed.output
        assert "pl4nted" not in printed.output


def test_who_changes_its_own_password_hears_of_it(scene: Scene) -> None:
    ours = scene.running.client_settings
    with Admin(**ours) as admin:
        admin.alter_scram_users([ScramPassword("carol", BY_SCRAM)]).checked()
        admin.create_acls([Acl("User:carol", "alter", "cluster")]).checked()
    with Admin(**{**ours, "username": "carol", "password": BY_SCRAM}) as carol:
        carol.alter_scram_users([ScramPassword("carol", BY_PLAIN)]).checked()
    with Admin(**{**ours, "username": "carol", "password": BY_PLAIN}) as carol, suppress(ClientError):
        carol.alter_scram_users([ScramRemoval("carol")]).checked()
