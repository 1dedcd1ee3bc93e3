"""What people write for warehouses and agents, and what of it cannot be."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from penstock.cli.console import agent_address, warehouse_addresses


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://web-1:9645", "http://web-1:9645"),
        ("web-1:9645/", "http://web-1:9645"),
        ("http://[::1]:9645/", "http://[::1]:9645"),
    ],
)
def test_an_agent_is_an_address(text: str, address: str) -> None:
    assert agent_address(text) == address


@pytest.mark.parametrize("text", ["web-1", "https://web-1:9645", "http://web-1:9645/status", "http://a@b:1", "x:y", ""])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        agent_address(text)


def test_warehouses_are_whole_paths_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_WAREHOUSE", raising=False)
    found = warehouse_addresses(("lake", "s3://bucket/lake", "lake"), "", ())
    assert [each.directory for each in found] == [str(tmp_path / "lake"), "s3://bucket/lake"]
    assert warehouse_addresses((), "", ()) == ()
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "other lake")
    assert [each.directory for each in warehouse_addresses((), "", ())] == [str(tmp_path / "other lake")]


def test_how_a_store_is_reached_needs_a_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_WAREHOUSE", raising=False)
    with pytest.raises(click.UsageError):
        warehouse_addresses((), "", ("endpoint=http://localhost:9000",))
    (found,) = warehouse_addresses(("s3://b/l",), "", ("endpoint=http://localhost:9000",))
    assert (dict(found.storage), "9000" in repr(found)) == ({"endpoint": "http://localhost:9000"}, False)
