"""`--client-config FILE`: what Java's tools read, for every command that dials; and no password among arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import penstock

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3cret";'


@pytest.fixture
def config(tmp_path: Path, bootstrap: str) -> str:
    path = tmp_path / "client.properties"
    path.write_text(f"bootstrap.servers={bootstrap}\nsecurity.protocol=PLAINTEXT\nrequest.timeout.ms=5000\n")
    return str(path)


def test_a_file_names_the_brokers(config: str) -> None:
    assert penstock("topic", "list", "--client-config", config).code == 0
    assert penstock("topic", "list", environment={"PENSTOCK_CLIENT_CONFIG": config}).code == 0
    assert penstock("topic", "list", "--client-config", config, "-b", "127.0.0.1:1").code == 5


def test_a_profile_keeps_the_path_of_a_file(config: str) -> None:
    assert penstock("profile", "create", "here", "--client-config", config).code == 0
    shown = penstock("profile", "show", "--format", "json").data
    assert shown["settings"] == {"client_config": config}
    assert penstock("topic", "list").code == 0


def test_a_login_that_is_not_taken_is_exit_code_4(tmp_path: Path, bootstrap: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        f"bootstrap.servers={bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={SCRAM}\n"
    )
    said = penstock("topic", "list", "--client-config", str(path))
    assert said.code == 4
    assert "the login failed: " in said.err
    assert "is this a listener with SASL?" in said.err
    assert "s3cret" not in said.err


def test_a_file_that_is_not_there_is_exit_code_2(tmp_path: Path) -> None:
    said = penstock("topic", "list", "--client-config", str(tmp_path / "absent"))
    assert said.code == 2
    assert "no such file" in said.err


@pytest.mark.parametrize("name", ["password", "sasl.jaas.config", "ssl_key_password"])
def test_secrets_are_no_arguments(name: str, bootstrap: str) -> None:
    for command in (("topic", "list", "-b", bootstrap), ("profile", "create", "p", "-b", bootstrap)):
        said = penstock(*command, "-X", f"{name}=s3cret")
        assert said.code == 2
        assert "seen by whoever lists processes" in said.err
        assert "s3cret" not in said.err + said.out


def test_a_password_comes_from_the_environment(bootstrap: str) -> None:
    named = ("topic", "list", "-b", bootstrap, "-X", "username=alice")
    missing = penstock(*named)
    assert (missing.code, "there is no password" in missing.err) == (2, True)
    given = penstock(*named, environment={"PENSTOCK_PASSWORD": "s3cret"})
    assert given.code == 4
    assert "s3cret" not in given.err


def test_doctor_names_a_listener_of_the_other_kind(tmp_path: Path, bootstrap: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"bootstrap.servers={bootstrap}\nsecurity.protocol=SSL\n")
    said = penstock("doctor", "--client-config", str(path))
    assert said.code == 5
    assert "speaks Kafka without TLS" in said.out
