"""The guides tell every metric of pipelines and show every key of their files, in examples that are checked or run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.pipeline.key_reference import reference_page
from penstock.spark.pipeline.keys import PARTS, Part
from penstock.spark.pipeline.metrics import names
from penstock.spark.pipeline.reading import examine
from tests.docs.pages import NOT_RUN, ROOT, Block, blocks, pages, steps

TAKES_FILES = re.compile(r"penstock pipeline (?:validate|run) (\S+\.toml)")
RULES = ("expect", "expect_or_drop", "expect_or_fail")


def files_of(page: Path) -> Iterator[Block]:
    """The pipeline files of a page that its commands are given."""
    given = {
        name
        for block in blocks(page)
        if block.kind == "console" and block.label != NOT_RUN
        for step in steps(block)
        for name in TAKES_FILES.findall(step.command)
    }
    return (block for block in blocks(page) if block.kind == "toml" and block.label in given)


def keys_in(text: str) -> Iterator[tuple[str, str]]:
    """Which keys a file has, each with the part that it stands in."""
    file = tomllib.loads(text)
    yield from (("top", key) for key in file)
    for part in ("spark", "storage", "catalog"):
        yield from ((f"[{part}]", key) for key in file.get(part, {}))
    for part in ("sources", "references", "sinks"):
        for table in file.get(part, {}).values():
            yield from _keys_of(table, f"[{part}.NAME]")
    for table in file.get("steps", []):
        yield from _keys_of(table, "[[steps]]")


def _keys_of(table: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    yield from ((where, key) for key in table)
    yield from (("watermark", key) for key in table.get("watermark", {}))
    for rules in RULES:
        for rule in table.get(rules, {}).values():
            if isinstance(rule, dict):
                yield from (("[… .expect] NAME", key) for key in rule)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """The keys of all files without a mistake."""
    found = set()
    for page in pages():
        folder = tmp_path_factory.mktemp(page.stem)
        files = list(files_of(page))
        for block in blocks(page) if files else []:
            if block.label.endswith(".py"):
                (folder / block.label).write_text(block.text)
        for block in files:
            if examine(block.text, folder / block.label).flow is not None:
                found.update(keys_in(block.text))
    return found


def test_the_guide_lists_every_metric_in_the_order_of_the_page() -> None:
    text = (ROOT / "docs" / "guides" / "pipelines.md").read_text()
    assert re.findall(r"^\| `(penstock_pipeline_\w+)`", text, re.M) == names()


def test_the_reference_of_pipeline_files_is_what_the_code_says() -> None:
    page = ROOT / "docs" / "reference" / "pipelines.md"
    assert page.read_text() == reference_page(), "run: make docs"


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.where)
def test_every_key_is_in_an_example_that_is_checked_or_run(part: Part, shown: set[tuple[str, str]]) -> None:
    assert [key.name for key in part.keys if (part.where, key.name) not in shown] == []


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.where)
def test_the_reference_sends_to_a_page_that_is_there(part: Part) -> None:
    page, _, heading = part.guide.partition("#")
    text = (ROOT / "docs" / "guides" / page).read_text()
    headings = [found.lower().replace(" ", "-") for found in re.findall(r"^#+ (.*)$", text, re.M)]
    assert not heading or heading in headings
