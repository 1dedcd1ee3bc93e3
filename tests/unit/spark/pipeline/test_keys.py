"""The list of keys is what reading asks for, and every key is told with its line when it is wrong or misspelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.spark.pipeline.key_reference import reference_page
from penstock.spark.pipeline.keys import PARTS, Part
from penstock.spark.pipeline.reading import examine
from penstock.spark.stores.settings import CATALOG_NAMES, STORAGE_NAMES

PLACE = Path("/somewhere/file.toml")
OPEN_PARTS = ("[storage]", "[catalog]")
"""Of these whoever reads them takes what is there, and asks for the names afterwards."""

PLACED = {
    "top": "{line}\n",
    "[spark]": "[spark]\n{line}\n",
    "[sources.NAME]": "[sources.other]\n{line}\n",
    "watermark": "[sources.other.watermark]\n{line}\n",
    "[… .expect] NAME": "[sources.other.expect.good]\n{line}\n",
    "[references.NAME]": "[references.other]\n{line}\n",
    "[[steps]]": "[[steps]]\n{line}\n",
    "[sinks.NAME]": "[sinks.other]\n{line}\n",
    "[storage]": "[storage]\n{line}\n",
    "[catalog]": "[catalog]\n{line}\n",
}
EVERY = [pytest.param(part, key.name, id=f"{part.where} {key.name}") for part in PARTS for key in part.keys]


def mistakes_at(text: str, line: str) -> list[str]:
    number = text.splitlines().index(line) + 1
    return [mistake.words for mistake in examine(text, PLACE).mistakes if mistake.line == number]


def test_every_part_has_a_place() -> None:
    assert list(PLACED) == [part.where for part in PARTS]


@pytest.mark.parametrize(("part", "key"), EVERY)
def test_a_key_of_the_wrong_kind_is_told_with_its_line_and_with_what_it_takes(part: Part, key: str) -> None:
    line = f"{key} = [07:32:00]"
    told = mistakes_at(PLACED[part.where].format(line=line), line)
    assert any(key in words and ("must" in words or "written one by one" in words) for words in told), told


@pytest.mark.parametrize(("part", "key"), EVERY)
def test_a_key_that_is_misspelled_is_told_with_its_line_and_the_right_one(part: Part, key: str) -> None:
    line = f'{key}{key[-1]} = "x"'
    told = mistakes_at(PLACED[part.where].format(line=line), line)
    assert any("means nothing" in words and key in words.split("means nothing")[1] for words in told), told


@pytest.mark.parametrize("part", [part for part in PARTS if part.where not in OPEN_PARTS], ids=lambda part: part.where)
def test_the_list_has_the_keys_that_reading_asks_for(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.declared.fields import Table

    asked: dict[str, set[str]] = {}
    finish = Table.finish

    def remembered(table: Table) -> None:
        asked.setdefault(".".join(map(str, table.path)), set()).update(table._asked)
        finish(table)

    monkeypatch.setattr(Table, "finish", remembered)
    examine(PLACED[part.where].format(line='not_a_key_at_all = "x"'), PLACE)
    paths: dict[str, Any] = {
        "top": "",
        "[spark]": "spark",
        "watermark": "sources.other.watermark",
        "[… .expect] NAME": "sources.other.expect.good",
        "[[steps]]": "steps.0",
        "[sources.NAME]": "sources.other",
        "[references.NAME]": "references.other",
        "[sinks.NAME]": "sinks.other",
    }
    assert {key.name for key in part.keys} == asked[paths[part.where]]


def test_the_list_has_the_settings_of_stores_and_catalogs() -> None:
    names = {part.where: [key.name for key in part.keys] for part in PARTS}
    assert set(names["[storage]"]) == set(STORAGE_NAMES)
    assert set(names["[catalog]"]) == {"uri", *CATALOG_NAMES}


def test_no_key_is_there_twice() -> None:
    for part in PARTS:
        names = [key.name for key in part.keys]
        assert len(names) == len(set(names)), part.where


def test_no_cell_of_the_page_breaks_its_table() -> None:
    rows = [line for line in reference_page().splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}
