"""Tables are found by name and by path, and what is not there is named with what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.errors import Missing
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.warehouse import NoSuchTable, Warehouse
from tests.unit.spark.lake.tables import SCHEMA, append, made


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    made(tmp_path / "orders", "delta")
    made(tmp_path / "shop" / "clicks", "delta")
    made(tmp_path / "visits", "iceberg")
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    options = {"table.format": "iceberg", "catalog": catalog, "table": "web.hits", "path": str(tmp_path / "hits")}
    open_store(LakeOptions.of(options)).create(SCHEMA, [])
    (tmp_path / "notes").mkdir()
    return Warehouse(str(tmp_path))


def test_tables_of_both_formats_are_found(lake: Warehouse) -> None:
    assert [(each.name, each.format) for each in lake.tables()] == [
        ("orders", "delta"),
        ("shop.clicks", "delta"),
        ("visits", "iceberg"),
        ("web.hits", "iceberg"),
    ]


@pytest.mark.parametrize("name", ["orders", "shop.clicks", "visits", "default.visits", "web.hits"])
def test_a_table_is_opened_by_its_name(lake: Warehouse, name: str) -> None:
    assert lake.find(name).open().schema() == SCHEMA


@pytest.mark.parametrize("path", ["orders", "shop/clicks", "visits"])
def test_a_table_is_opened_by_its_path(lake: Warehouse, path: str) -> None:
    whole = Path(lake.directory, path)
    assert Warehouse("/nowhere").find(str(whole)).open().location == str(whole)


def test_a_name_that_both_formats_have_is_the_delta_table(tmp_path: Path) -> None:
    made(tmp_path / "orders", "delta")
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    options = {"table.format": "iceberg", "catalog": catalog, "table": "default.orders", "path": f"{tmp_path}/ice"}
    append_to = open_store(LakeOptions.of(options))
    append_to.create(SCHEMA, [])
    append(append_to, 0, 1, batch=0)
    lake = Warehouse(str(tmp_path))
    assert [(each.name, each.format) for each in lake.tables()] == [
        ("default.orders", "iceberg"),
        ("orders", "delta"),
    ]
    assert len(lake.find("default.orders").open().files()) == 1


def test_a_wrong_name_brings_the_nearest_or_all(lake: Warehouse) -> None:
    with pytest.raises(NoSuchTable, match=r"no table oders .* did you mean orders\?"):
        lake.find("oders")
    with pytest.raises(NoSuchTable, match=r"there are orders, shop\.clicks, visits, web\.hits"):
        lake.find("zzz")
    with pytest.raises(NoSuchTable, match="has none"):
        Warehouse(f"{lake.directory}/notes").find("orders")


def test_a_catalog_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="no Iceberg catalog"):
        Warehouse(str(tmp_path), f"{tmp_path}/none.db").tables()
