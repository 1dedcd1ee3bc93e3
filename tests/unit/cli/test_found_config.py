"""The configuration of a secured cluster is found by commands themselves, for its own addresses alone."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from penstock.cli.agent_choice import Choice
from penstock.cli.bench_running import targets_of
from penstock.cli.connection import connect
from penstock.cli.found_config import config_for, config_in
from penstock.cli.pipeline import _over_file, pipeline
from penstock.model.errors import PenstockError
from penstock.spark.pipeline.reading import read_flow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "security" / "admin.properties"
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text("bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093\nsecurity.protocol=SASL_SSL\n")
    return tmp_path


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        ("127.0.0.1:9092", True),
        ("localhost:9093,127.0.0.1:9092", True),
        ("127.0.0.1:9094", False),
        ("kafka-1:9092", False),
        ("127.0.0.1:9092,kafka-1:9092", False),
    ],
)
def test_it_is_for_the_addresses_that_it_names(folder: Path, addresses: str, found: bool) -> None:
    expected = folder / "security" / "admin.properties" if found else None
    assert config_for(addresses, folder) == expected


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_get_at_is_left_alone(folder: Path, mode: int) -> None:
    (folder / "security" / "admin.properties").chmod(mode)
    assert config_for("127.0.0.1:9092", folder) is None


def test_where_there_is_none_or_a_broken_one_nothing_is_found(folder: Path, tmp_path: Path) -> None:
    assert config_for("127.0.0.1:9092", tmp_path / "elsewhere") is None
    (folder / "security" / "admin.properties").write_text("bootstrap.servers=\\u00")
    assert config_for("127.0.0.1:9092", folder) is None


def test_a_folder_that_was_named_has_to_have_one_for_the_address(folder: Path, tmp_path: Path) -> None:
    path = folder / "security" / "admin.properties"
    assert config_in(str(folder), None) == config_in(str(folder), "localhost:9092") == path
    with pytest.raises(PenstockError, match="penstock dev --secure"):
        config_in(str(tmp_path / "elsewhere"), None)
    with pytest.raises(PenstockError, match=r"is not for kafka-1:9092; it names 127\.0\.0\.1:9092"):
        config_in(str(folder), "kafka-1:9092")


def test_what_is_said_comes_before_what_is_found(here: Path) -> None:
    found = {"client_config": FOUND}
    assert connect("localhost:9092", None, {}, 0).remembered == found
    assert connect("localhost:9092", None, {"request_timeout_ms": "1"}, 0).remembered == found
    assert connect("localhost:9999", None, {}, 0).remembered == {}
    assert connect("localhost:9092", None, {"security.protocol": "PLAINTEXT"}, 0).remembered == {}
    assert connect("localhost:9092", None, {"cafile": "x"}, 0).remembered == {}
    assert connect(None, None, {}, 0, str(here)).bootstrap == "127.0.0.1:9092,127.0.0.1:9093"


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder is `.penstock` of where commands run."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.chdir(folder)
    Path(".penstock").symlink_to(folder)
    return folder


FOUND = ".penstock/security/admin.properties"


def test_what_is_found_for_one_address_is_not_shown_to_another(here: Path) -> None:
    connection = connect("localhost:9092", None, {"request_timeout_ms": "1"}, 0)
    assert connection.towards("kafka-1:9092").remembered == {}
    assert connection.towards("kafka-1:9092").given == {"request_timeout_ms": "1"}
    assert connection.towards("kafka-1:9092").towards("127.0.0.1:9093").remembered == {"client_config": FOUND}
    assert connection.towards("127.0.0.1:9093", {"security.protocol": "PLAINTEXT"}).remembered == {}
    # A file that was named is for whoever is dialled; a folder that was named is not.
    named = connect("localhost:9092", None, {"client_config": FOUND}, 0, str(here))
    assert named.towards("kafka-1:9092").given == {"client_config": FOUND}
    with pytest.raises(PenstockError, match="is not for kafka-1:9092"):
        connect("localhost:9092", None, {}, 0, str(here)).towards("kafka-1:9092")


def test_a_bench_shows_it_to_the_address_that_it_is_for(here: Path) -> None:
    first, second = targets_of(connect("localhost:9092", None, {}, 0), "kafka-1:9092")
    assert {kind["client_config"] for kind in (first.producer, first.consumer, first.admin)} == {FOUND}
    assert not any("client_config" in kind for kind in (second.producer, second.consumer, second.admin))


@pytest.mark.parametrize(
    ("lines", "kafka"),
    [
        ("", {"client.config": FOUND}),
        ('bootstrap = "127.0.0.1:9093"', {"client.config": FOUND}),
        ('bootstrap = "kafka-1:9092"', {}),
    ],
)
def test_an_agent_shows_it_to_the_brokers_of_its_file(here: Path, lines: str, kafka: dict[str, str]) -> None:
    file = here / "agent.toml"
    file.write_text(f'name = "a"\n{lines}\n[inputs.tail]\ntype = "tail"\npaths = ["/x/*.log"]\ntopic = "t"\n')
    choice = Choice(file, None, None, connect(None, None, {}, 0), said_bootstrap=False)
    assert choice.load().output.kafka == kafka


@pytest.mark.parametrize(
    ("lines", "kafka"),
    [("", {"client.config": FOUND}), ('bootstrap = "kafka-1:9092"', {})],
)
def test_a_pipeline_shows_it_to_the_brokers_of_its_file(here: Path, lines: str, kafka: dict[str, str]) -> None:
    file = here / "flow.toml"
    file.write_text(
        f'name = "p"\n{lines}\n[sources.orders]\ntopic = "orders"\n[sinks.copy]\nfrom = "orders"\ntopic = "copies"\n'
    )
    with click.Context(pipeline):
        assert _over_file(read_flow(file), connect(None, None, {}, 0)).kafka == kafka
