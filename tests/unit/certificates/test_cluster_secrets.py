"""The secret of a cluster: made once, read by nodes through a reference, and in no text but its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.certificates.cluster_secrets import TOKEN_SECRET, ClusterSecrets, overridden
from penstock.model.config import parse_properties
from penstock.transport.config_references import resolved


@pytest.fixture
def secrets(tmp_path: Path) -> ClusterSecrets:
    secrets = ClusterSecrets(tmp_path / "security" / "secrets.properties")
    secrets.make()
    return secrets


def value_in(path: Path) -> str:
    return parse_properties(path.read_text())[TOKEN_SECRET]


def test_a_node_is_told_where_the_secret_is_and_never_what(secrets: ClusterSecrets) -> None:
    assert secrets.settings() == {
        "config.providers": "cluster",
        "config.providers.cluster.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.cluster.param.allowed.paths": str(secrets.path),
        "delegation.token.secret.key": f"${{cluster:{secrets.path}:delegation.token.secret.key}}",
    }
    assert resolved(secrets.settings())[TOKEN_SECRET] == value_in(secrets.path)
    assert len(value_in(secrets.path)) == 43
    assert secrets.path.stat().st_mode & 0o777 == 0o600


def test_it_is_made_once_and_differs_from_cluster_to_cluster(secrets: ClusterSecrets, tmp_path: Path) -> None:
    before = value_in(secrets.path)
    secrets.make()
    assert value_in(secrets.path) == before
    other = ClusterSecrets(tmp_path / "other.properties")
    other.make()
    assert value_in(other.path) != before


def test_a_node_of_another_host_reads_it_there(secrets: ClusterSecrets) -> None:
    told = secrets.settings(at=Path("/var/lib/penstock/secrets.properties"))
    assert told[TOKEN_SECRET] == "${cluster:/var/lib/penstock/secrets.properties:delegation.token.secret.key}"


def test_a_cluster_of_an_earlier_release_goes_on_without(tmp_path: Path) -> None:
    assert ClusterSecrets(tmp_path / "secrets.properties").settings() == {}


@pytest.mark.parametrize("name", ["a:b", "a}b", "a,b"])
def test_a_path_that_no_reference_can_name_is_not_referred_to(tmp_path: Path, name: str) -> None:
    secrets = ClusterSecrets(tmp_path / name / "secrets.properties")
    secrets.make()
    assert secrets.settings() == {}


def test_providers_of_somebody_else_do_not_make_a_text_of_the_reference(secrets: ClusterSecrets) -> None:
    found = overridden(secrets.settings(), {"config.providers": "env, file", "x": "1"})
    assert found["config.providers"] == "cluster,env,file"
    assert (found["x"], found[TOKEN_SECRET]) == ("1", secrets.settings()[TOKEN_SECRET])
    assert overridden(secrets.settings(), {TOKEN_SECRET: "mine"})[TOKEN_SECRET] == "mine"
    assert overridden({"a": "1"}, {"b": "2"}) == {"a": "1", "b": "2"}
