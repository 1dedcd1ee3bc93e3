"""Ports for nodes on this machine: free, apart from each other, and none that an outgoing connection may have taken."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.cli import dev_ports
from penstock.cli.dev_ports import controller_port, ephemeral_ports, free_ports, is_free, keep_controller_port


def test_ports_that_are_chosen_are_free_apart_and_not_ephemeral() -> None:
    chosen = free_ports(5)
    assert len(set(chosen)) == 5
    assert all(map(is_free, chosen))
    assert not set(chosen) & set(ephemeral_ports())


def test_where_every_port_is_ephemeral_the_system_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_ports, "ephemeral_ports", lambda: range(1_024, 65_536))
    chosen = free_ports(3)
    assert len(set(chosen)) == 3
    assert all(map(is_free, chosen))


def test_a_port_that_was_kept_is_taken_again(tmp_path: Path) -> None:
    first = controller_port(tmp_path)
    keep_controller_port(tmp_path, first)
    assert [controller_port(tmp_path) for _ in range(3)] == [first] * 3


def test_a_port_is_kept_in_a_folder_that_is_not_there_yet_and_where_it_cannot_be_it_is_not(tmp_path: Path) -> None:
    keep_controller_port(tmp_path / "new" / "data", 20_001)
    assert (tmp_path / "new" / "data" / "dev.json").exists()
    (tmp_path / "file").write_text("in the way")
    keep_controller_port(tmp_path / "file" / "data", 20_001)
    assert is_free(controller_port(tmp_path / "file" / "data"))


def test_a_port_that_somebody_else_has_by_now_gives_way_to_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        keep_controller_port(tmp_path, taken.getsockname()[1])
        assert controller_port(tmp_path) != taken.getsockname()[1]


@pytest.mark.parametrize("text", ["", "{}", '{"controller_port": "many"}', '{"controller_port": 70000}', "[]"])
def test_a_file_that_is_not_ours_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "dev.json").write_text(text)
    assert is_free(controller_port(tmp_path))
