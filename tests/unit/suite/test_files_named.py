"""What prose says of the house is where it says: every file and folder that is named exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
ROOT = Path(__file__).parents[3]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.py)`")
FOLDER = re.compile(r"`((?:[a-z_]+/)+)`")


def ends_of(names: set[str]) -> set[str]:
    """Each path, and what is left of it when one begins at any of its folders: prose leaves out what is known."""
    return {"/".join(parts[at:]) for name in names for parts in [name.split("/")] for at in range(len(parts))}


@cache
def ends() -> set[str]:
    """Of every file and folder of the sources, the tests and the docs."""
    found = [*SOURCE.rglob("*"), *(ROOT / "tests").rglob("*"), *(ROOT / "docs").rglob("*")]
    names = {path.as_posix().removeprefix(f"{ROOT}/") + ("/" if path.is_dir() else "") for path in found}
    return ends_of(names | {"src/", "tests/", "docs/"})


def named(text: str) -> Iterator[str]:
    yield from FILE.findall(text)
    yield from FOLDER.findall(text)


def missing(text: str, known: set[str]) -> list[str]:
    return sorted({name for name in named(text) if name not in known})


@cache
def docstrings() -> list[tuple[Path, str]]:
    read = [(path, ast.get_docstring(ast.parse(path.read_text("utf-8")))) for path in sorted(SOURCE.rglob("*.py"))]
    return [(path, told) for path, told in read if told]


def near(path: Path, name: str) -> bool:
    """Whether the file is beside a module, below its folder, or told from a folder that both are in."""
    folders = [path.parent, *(above for above in path.parents if above.is_relative_to(SOURCE))]
    return any((folder / name).exists() for folder in folders) or any(path.parent.rglob(name))


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_that_there_are(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(list(named(text))) >= 5, "the page was read"
    assert missing(text, ends()) == []


def test_modules_name_files_that_there_are() -> None:
    told = {path.name: gone for path, text in docstrings() if (gone := missing(text, ends()))}
    assert told == {}


def test_a_room_says_which_files_to_read_and_has_them() -> None:
    rooms = [(path, text) for path, text in docstrings() if path.name == "__init__.py"]
    assert len(rooms) > 40, "the rooms were read"
    gone = {
        f"{path.parent.relative_to(SOURCE)}: {name}"
        for path, text in rooms
        for name in named(text)
        if not near(path, name)
    }
    assert gone == set()


def test_a_file_that_is_gone_is_missed() -> None:
    known = ends_of({"penstock/server/node.py", "penstock/server/"})
    assert missing("`server/node.py`, `node.py`, `server/`", known) == []
    assert missing("`server/gone.py`, `ode.py`, `parts/`", known) == ["ode.py", "parts/", "server/gone.py"]
