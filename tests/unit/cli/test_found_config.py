"""The configuration of a secured cluster is found by commands themselves, for its own addresses alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.connection import connect
from penstock.cli.found_config import config_for, config_in
from penstock.model.errors import PenstockError


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


def test_what_is_said_comes_before_what_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.chdir(folder)
    Path(".penstock").symlink_to(folder)
    found = {"client_config": ".penstock/security/admin.properties"}
    assert connect("localhost:9092", None, {}, 0).remembered == found
    assert connect("localhost:9092", None, {"request_timeout_ms": "1"}, 0).remembered == found
    assert connect("localhost:9999", None, {}, 0).remembered == {}
    assert connect("localhost:9092", None, {"security.protocol": "PLAINTEXT"}, 0).remembered == {}
    assert connect("localhost:9092", None, {"cafile": "x"}, 0).remembered == {}
    assert connect(None, None, {}, 0, str(folder)).bootstrap == "127.0.0.1:9092,127.0.0.1:9093"
