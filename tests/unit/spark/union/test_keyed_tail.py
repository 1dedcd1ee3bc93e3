"""What a table by key remembers of deletes is read side by side, once a file, and kept within bounds."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from penstock.spark.lake.keyed.changes import ChangeColumns
from penstock.spark.stores.storage import FROM_ENVIRONMENT
from penstock.spark.union import keyed_tail
from penstock.spark.union.keyed_tail import Graves
from tests.patience import within

ROWS = pa.schema([("id", pa.int64()), ("at", pa.int64())])


@pytest.fixture
def columns() -> ChangeColumns:
    return ChangeColumns(("id",), ROWS, in_log_order=False)


def test_files_are_opened_side_by_side_and_once(columns: ChangeColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    together, opened = threading.Barrier(4), list[str]()

    def slow(path: str, *_: object) -> pa.Table:
        opened.append(path)
        together.wait(within(20))
        return pa.table({"id": [int(path)]})

    monkeypatch.setattr(keyed_tail, "graves_in", slow)
    graves = Graves(1 << 20)
    first = graves.of(["1", "2", "3", "4"], columns, FROM_ENVIRONMENT)
    assert [each["id"].to_pylist() for each in first] == [[1], [2], [3], [4]]
    assert graves.of(["3", "1"], columns, FROM_ENVIRONMENT) == [first[2], first[0]]
    assert sorted(opened) == ["1", "2", "3", "4"]


def test_what_is_kept_has_a_bound(columns: ChangeColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def read(path: str, *_: object) -> pa.Table:
        opened.append(path)
        return pa.table({"id": list(range(1_000))})

    monkeypatch.setattr(keyed_tail, "graves_in", read)
    graves = Graves(20_000)
    graves.of(["1", "2", "3", "4"], columns, FROM_ENVIRONMENT)
    graves.of(["3", "4"], columns, FROM_ENVIRONMENT)
    assert len(opened) == 4
    graves.of(["1"], columns, FROM_ENVIRONMENT)
    assert opened[-1] == "1"
    assert sum(each.nbytes for each in graves._known.values()) <= 20_000
