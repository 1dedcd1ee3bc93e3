"""Kafka's own tools for ACLs, users, quotas and delegation tokens, against a secured node, and its log after them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import EmbeddedBroker, broker
from tests.compat.apache.tools import Outcome, run_tool, try_tool

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

SECURED = {"auto.create.topics.enable": False, "delegation.token.secret.key": "the same on all nodes"}
USERS = ("--entity-type", "users", "--entity-name")
CLIENTS = ("--entity-type", "clients", "--entity-name")
ADDRESSES = ("--entity-type", "ips", "--entity-name")
LOGIN = "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"


class Kafka:
    """Kafka's tools, as the first user of a secured node or as whom a file says."""

    def __init__(self, node: EmbeddedBroker) -> None:
        self.node = node

    def run(self, name: str, *arguments: str, stdin: str | None = None, config: Path | None = None) -> str:
        outcome = self.tried(name, *arguments, stdin=stdin, config=config)
        assert outcome.returncode == 0, outcome
        return outcome.stdout

    def tried(self, name: str, *arguments: str, stdin: str | None = None, config: Path | None = None) -> Outcome:
        file = str(config or self.node.client_files.java)
        return try_tool(
            name, "--bootstrap-server", self.node.bootstrap_servers, "--command-config", file, *arguments, stdin=stdin
        )

    def configs(self, *arguments: str) -> str:
        return self.run("kafka-configs", *arguments)

    def file(self, path: Path, name: str, password: str, more: str = "") -> Path:
        """The file of the first user with another login."""
        lines = self.node.client_files.java.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("sasl.jaas.config")]
        path.write_text("\n".join([*kept, f'{LOGIN} username="{name}" password="{password}"{more};', ""]))
        return path

    def records(self, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
        """(type, data) of the records of these kinds in the metadata log, as Kafka reads them."""
        logs = sorted(Path(self.node.data_dir).glob("**/__cluster_metadata-0/*.log"))
        dump = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, logs)))
        assert "rror" not in dump.stderr, dump
        read = [json.loads(line.partition("payload: ")[2]) for line in dump.stdout.splitlines() if "payload: " in line]
        return [(each["type"], each["data"]) for each in read if each["type"] in kinds]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with broker(SECURED, secure=True) as running:
        yield Kafka(running)


def test_acls_are_added_listed_and_removed(kafka: Kafka) -> None:
    reads = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    kafka.run("kafka-acls", "--add", *reads, "--operation", "Write")
    denial = ("--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "All")
    kafka.run("kafka-acls", "--add", *denial, "--topic", "log-", "--resource-pattern-type", "prefixed")
    listed = kafka.run("kafka-acls", "--list")
    assert set(re.findall(r"\(principal=.*\)", listed)) == {
        "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)",
        "(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)",
        "(principal=User:bob, host=10.0.0.7, operation=ALL, permissionType=DENY)",
    }
    assert "ResourcePattern(resourceType=TOPIC, name=log-, patternType=PREFIXED)" in listed
    kafka.run("kafka-acls", "--remove", "--force", *reads)
    left = kafka.run("kafka-acls", "--list", "--topic", "orders")
    assert re.findall(r"operation=(\w+)", left) == ["WRITE"]
    records = kafka.records("ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD")
    made = {data["id"]: (data["principal"], data["operation"], data["patternType"]) for _, data in records[:-1]}
    assert set(made.values()) == {("User:alice", 3, 3), ("User:alice", 4, 3), ("User:bob", 2, 4)}
    assert (records[-1][0], made[records[-1][1]["id"]][1]) == ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", 3)


def test_users_are_added_described_let_in_and_deleted(kafka: Kafka, tmp_path: Path) -> None:
    for word in ("SCRAM-SHA-256=[iterations=8192,password=wonder]", "SCRAM-SHA-512=[password=wonder]"):
        kafka.configs("--alter", *USERS, "alice", "--add-config", word)
    described = kafka.configs("--describe", *USERS, "alice")
    assert "'alice' are SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in described
    config = kafka.file(tmp_path / "alice.properties", "alice", "wonder")
    assert kafka.run("kafka-topics", "--list", config=config).strip() == ""
    kafka.configs("--alter", *USERS, "alice", "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM-SHA-512" not in kafka.configs("--describe", *USERS, "alice")
    refused = kafka.tried("kafka-topics", "--list", config=config)
    assert (refused.returncode, "invalid credentials" in str(refused)) == (1, True)
    records = kafka.records("USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD")
    alices = [(kind, data["mechanism"], data.get("iterations")) for kind, data in records if data["name"] == "alice"]
    assert alices == [
        ("USER_SCRAM_CREDENTIAL_RECORD", 1, 8192),
        ("USER_SCRAM_CREDENTIAL_RECORD", 2, 4096),
        ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", 2, None),
    ]


def test_quotas_are_added_described_and_deleted(kafka: Kafka) -> None:
    both = (*USERS, "bob", "--entity-type", "clients", "--entity-default")
    kafka.configs("--alter", *both, "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    kafka.configs("--alter", *CLIENTS, "app", "--add-config", "consumer_byte_rate=2048")
    kafka.configs("--alter", *ADDRESSES, "10.0.0.7", "--add-config", "connection_creation_rate=5")
    of_bob = kafka.configs("--describe", *both)
    assert "user-principal 'bob', default client-id" in of_bob.replace("the default", "default")
    assert set(re.findall(r"\w+=[\d.]+", of_bob)) == {"producer_byte_rate=1024.0", "request_percentage=12.5"}
    assert "'app' are consumer_byte_rate=2048.0" in kafka.configs("--describe", *CLIENTS, "app")
    assert "'10.0.0.7' are connection_creation_rate=5.0" in kafka.configs("--describe", *ADDRESSES, "10.0.0.7")
    kafka.configs("--alter", *CLIENTS, "app", "--delete-config", "consumer_byte_rate")
    assert "consumer_byte_rate" not in kafka.configs("--describe", *CLIENTS, "app")
    records = [data for _, data in kafka.records("CLIENT_QUOTA_RECORD")]
    assert {"entityType": "client-id", "entityName": None} in records[0]["entity"]
    assert [(each["key"], each["value"], each["remove"]) for each in records[2:]] == [
        ("consumer_byte_rate", 2048.0, False),
        ("connection_creation_rate", 5.0, False),
        ("consumer_byte_rate", 0.0, True),
    ]


def test_tokens_are_made_described_logged_in_with_renewed_and_ended(kafka: Kafka, tmp_path: Path) -> None:
    def tokens(*arguments: str) -> str:
        return kafka.run("kafka-delegation-tokens", *arguments)

    made = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:alice")
    found = re.search(r"^(\S{22}) (\S{88}) User:admin +User:admin +\[User:alice\]", made, re.MULTILINE)
    assert found is not None, made
    token_id, hmac = found.groups()
    # Without an owner this tool asks for the tokens of an empty list, which are none in Kafka too.
    assert hmac in tokens("--describe", "--owner-principal", "User:admin")
    config = kafka.file(tmp_path / "token.properties", token_id, hmac, ' tokenauth="true"')
    kafka.run("kafka-topics", "--create", "--topic", "lent", "--partitions", "1", config=config)
    kafka.run("kafka-console-producer", "--topic", "lent", stdin="one\n", config=config)
    read = ("--topic", "lent", "--from-beginning", "--max-messages", "1")
    assert kafka.run("kafka-console-consumer", *read, config=config) == "one\n"
    refused = kafka.tried("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1", config=config)
    assert (refused.returncode, "UnsupportedByAuthenticationException" in refused.stderr) == (1, True)
    assert "Completed renew" in tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed expire" in tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert hmac not in tokens("--describe", "--owner-principal", "User:admin")
    assert "invalid credentials" in str(kafka.tried("kafka-topics", "--list", config=config))
    records = kafka.records("DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD")
    assert [(kind, data["tokenId"]) for kind, data in records] == [
        ("DELEGATION_TOKEN_RECORD", token_id),
        ("DELEGATION_TOKEN_RECORD", token_id),
        ("REMOVE_DELEGATION_TOKEN_RECORD", token_id),
    ]
    assert (records[0][1]["owner"], records[0][1]["renewers"]) == ("User:admin", ["User:alice"])
    assert records[0][1]["expirationTimestamp"] < records[1][1]["expirationTimestamp"]
