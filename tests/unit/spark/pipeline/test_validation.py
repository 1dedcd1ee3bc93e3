"""Parts of a flow fit together: no circles, no names twice, functions that are there; nothing declared for nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.spark.pipeline.reading import examine
from tests.unit.spark.pipeline.files import WHOLE, changed, complaints

PYTHON = ('sql = "SELECT * FROM orders WHERE amount > 0"', 'python = "my_steps:score"\nfrom = "orders"')


def test_an_extra_that_a_table_needs_is_missed_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = changed(('table = "raw"', 'table = "raw"\ntable_format = "iceberg"'))
    assert complaints(text) == []
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    assert complaints(text) == ["31:1: Iceberg tables need pyiceberg: pip install 'penstock[spark,iceberg]'"]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("id BIGINT", "id BIGNT", "has 'BIGNT, country STRIN' at character 4 where a type of Spark such as BIGINT"),
        ('"raw"', '"raw"\npartition_by = ["contry"]', "orders has no column 'contry'; did you mean 'country'?"),
    ],
)
def test_without_spark_mistakes_that_need_none_are_found(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str, words: str
) -> None:
    with_spark = complaints(changed((before, after)))
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert complaints(WHOLE) == []
    (told,) = complaints(changed((before, after)))
    assert words in told
    assert [told] == with_spark


def test_a_circle_is_told_once() -> None:
    text = changed(("FROM orders WHERE amount > 0", "FROM totals"))
    assert complaints(text) == ["15:1: steps go in a circle: totals reads paid reads totals"]


def test_a_step_cannot_be_its_own_input() -> None:
    assert complaints(changed(("FROM orders WHERE", "FROM paid WHERE"))) == [
        "21:1: steps go in a circle: paid reads paid"
    ]


def test_a_name_is_for_one() -> None:
    told = complaints(
        changed(('name = "paid"', 'name = "Orders"'), ("FROM paid", "FROM orders"), ('"paid"\n', '"orders"\n'))
    )
    assert told == ["21:1: the name 'Orders' is taken by source orders"]


def test_what_goes_nowhere_is_a_warning_and_no_mistake() -> None:
    text = WHOLE + '[sources.idle]\ntopic = "t"\n[[steps]]\nname = "unread"\nsql = "select 1 from idle"\n'
    found = examine(text, Path("/x/p.toml"))
    assert found.flow is not None
    assert [(each.line, each.words) for each in found.warnings] == [
        (37, "source idle goes to no sink and will not be read"),
        (39, "step unread goes to no sink and will not run"),
    ]


def test_a_function_is_looked_for_in_the_text_of_its_module(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    text = changed(PYTHON)
    assert complaints(text, path) == [
        f"23:1: there is no module 'my_steps': neither {tmp_path}/my_steps.py nor one that is installed"
    ]
    (tmp_path / "my_steps.py").write_text("raise SystemExit\ndef scores(rows): ...\n")
    assert complaints(text, path) == ["23:1: my_steps.py has no 'score'; did you mean 'scores'?"]
    (tmp_path / "my_steps.py").write_text("def score(rows): ...\n")
    assert complaints(text, path) == []
    (tmp_path / "my_steps.py").write_text("def score(:\n")
    assert complaints(text, path)[0].startswith(f"23:1: {tmp_path}/my_steps.py cannot be read as Python")


def test_files_for_the_executors_must_be_there(tmp_path: Path) -> None:
    text = changed(('master = "local[2,4]"', 'python = ["gone.py"]'))
    assert complaints(text, tmp_path / "p.toml") == [f"5:11: there is no file {tmp_path}/gone.py"]
