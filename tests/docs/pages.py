"""Markdown pages as the tests see them: fenced blocks with a kind, perhaps a file name, and their text.

A ```console block is run: lines after `$ ` are commands, the lines below a command are what it must print (`…` stands
for anything, a line of its own for any lines; columns may be wider or narrower). One with the word not-run is left
alone, because it needs another program or is what runs us; one with on-1 runs on the first of three hosts. A block with
a file name, such as ```properties server.properties, is written to that file first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = "not-run"
IN_CHINESE = ROOT / "README.zh-CN.md"

_FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    kind: str
    label: str
    text: str


class Step(NamedTuple):
    """A command and what it prints."""

    command: str
    expected: list[str]


def pages() -> list[Path]:
    """Every page that a reader meets, without those that are printed from code or hold measurements."""
    written = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in written if not {"reference", "benchmarks"} & set(page.relative_to(ROOT).parts)]


def blocks(page: Path) -> list[Block]:
    return [Block(kind, label or "", text) for kind, label, text in _FENCE.findall(page.read_text())]


def steps(block: Block) -> list[Step]:
    found: list[Step] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:], []))
        else:
            assert found, f"a console block begins with a command, not with {line!r}"
            found[-1].expected.append(line)
    return found


def matches(expected: list[str], printed: str) -> bool:
    """Whether a command printed what a page says; a page that shows nothing leaves it open."""
    if not expected:
        return True
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, _narrow(line).split("…"))) + "\n"
    return re.fullmatch(pattern, _narrow(printed)) is not None


def _narrow(text: str) -> str:
    """Columns are as wide as their widest word, and paths are longer here than on the page."""
    return re.sub(r" {2,}", "  ", text)
