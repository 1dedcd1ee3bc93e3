"""The guides of agents are complete: every metric, every setting of every input, and an example of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.admin.metrics import names
from penstock.agent.multiline import read_multiline
from penstock.agent.routing.reading import read_routing
from penstock.agent.settings.kinds import KINDS, kind_of
from penstock.agent.settings.reading import examine
from penstock.declared.fields import Notes, Table
from penstock.declared.positions import Positions
from tests.docs.pages import ROOT, blocks, steps

AGENTS = ROOT / "docs" / "guides" / "agents.md"
INPUTS = ROOT / "docs" / "guides" / "agents-inputs.md"


class Asked(dict[str, Any]):
    """A table of a file that remembers which keys its reader wanted."""

    def __init__(self, **given: Any) -> None:
        super().__init__(given)
        self.keys_asked: set[str] = set()

    def __contains__(self, key: object) -> bool:
        self.keys_asked.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked.add(key)
        return super().get(key, default)


def table_of(values: Asked) -> Table:
    return Table(values, ("inputs", "x"), Notes(Positions("")), "inputs.x")


def section(kind: str) -> str:
    return re.split(r"^## ", INPUTS.read_text(), flags=re.M)[1 + list_of_sections().index(kind)]


def list_of_sections() -> list[str]:
    return re.findall(r"^## (\w+)$", INPUTS.read_text(), re.M)


def documented(text: str) -> set[str]:
    """The names in the first column of the first table of settings."""
    rows = re.search(r"^\| setting \|.*\n\|[-|: ]+\n((?:\|.*\n)+)", text, re.M)
    assert rows is not None
    cells = [line.split("|")[1] for line in rows[1].splitlines()]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_metric_is_in_the_guide() -> None:
    assert re.findall(r"^\| `(penstock_agent_\w+)`", AGENTS.read_text(), re.M) == names(files=True)


def test_every_kind_of_input_has_a_section_and_an_example() -> None:
    assert sorted(list_of_sections()) == sorted(KINDS)
    files = [block.text for block in blocks(INPUTS) if block.label.endswith(".toml")]
    assert set(re.findall(r'^type = "(\w+)"$', "\n".join(files), re.M)) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_of_an_input_is_in_the_guide(kind: str) -> None:
    values = Asked(type=kind)
    kind_of(kind).read(table_of(values), Path("/"))
    assert documented(section(kind)) == values.keys_asked - {"type"}


def examples() -> Iterator[dict[str, Any]]:
    """The files of agents that the guides have checked or run, without a mistake."""
    for page in (AGENTS, INPUTS):
        commands = [step.command for block in blocks(page) if block.kind == "console" for step in steps(block)]
        for block in blocks(page):
            used = any(re.search(rf"agent (validate|run|test) .*-c {block.label}", command) for command in commands)
            if block.label.endswith(".toml") and used and not examine(block.text, page, environ={}).mistakes:
                yield tomllib.loads(block.text)


def test_every_setting_of_a_postgres_input_is_in_an_example() -> None:
    values = Asked(type="postgres")
    kind_of("postgres").read(table_of(values), Path("/"))
    shown = {key for file in examples() for table in file["inputs"].values() for key in table}
    assert values.keys_asked - shown == set()


def test_what_makes_an_agent_exact_is_in_an_example() -> None:
    assert {"exactly_once", "machine_id"} <= {key for file in examples() for key in file}


def test_every_setting_that_inputs_share_is_in_the_guide() -> None:
    values = Asked()
    read_routing(table_of(values))
    assert documented(INPUTS.read_text()) == {*values.keys_asked, "[[inputs.NAME.transforms]]"}


def test_every_setting_of_multiline_is_in_the_guide() -> None:
    values = Asked()
    read_multiline(table_of(Asked(multiline=values)))
    shown = section("tail").split("`multiline` as a table")[1]
    assert documented(shown) == values.keys_asked
