"""Globs, links, exclusions, and folders that are not read again for nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.agent.inputs.tail.finding import Finder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.log", "b.log", ".hidden.log", "c.txt", "sub/d.log", "sub/deep/e.log", "sub/deep/f.log.gz"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "folder.log").mkdir()
    return tmp_path


def found(tree: Path, *globs: str, exclude: tuple[str, ...] = ()) -> list[str]:
    finder = Finder(tuple(str(tree / glob) for glob in globs), exclude)
    return [os.path.relpath(each.path, tree) for each in finder.find().found]


def test_globs(tree: Path) -> None:
    assert found(tree, "*.log") == ["a.log", "b.log"]
    assert found(tree, "**/*.log") == ["a.log", "b.log", "sub/d.log", "sub/deep/e.log"]
    assert found(tree, "sub/**") == ["sub/d.log", "sub/deep/e.log", "sub/deep/f.log.gz"]
    assert found(tree, "*/d.log", "[ab].log") == ["a.log", "b.log", "sub/d.log"]
    assert found(tree, ".*.log") == [".hidden.log"]
    assert found(tree, "nothing/*.log") == []


def test_what_is_excluded(tree: Path) -> None:
    assert found(tree, "**/*.log*", exclude=("*.gz", "b.*")) == ["a.log", "sub/d.log", "sub/deep/e.log"]
    assert found(tree, "**/*.log", exclude=(str(tree / "sub/*.log"),)) == ["a.log", "b.log", "sub/deep/e.log"]
    assert found(tree, "**/*.log", exclude=(str(tree / "sub/**"),)) == ["a.log", "b.log"]


def test_a_name_is_given_whether_it_exists_or_not(tree: Path) -> None:
    finding = Finder((str(tree / "later.log"),), ()).find()
    assert [(Path(each.path).name, each.named) for each in finding.found] == [("later.log", True)]


def test_folders_that_are_links_are_not_walked_into_for_ever(tree: Path) -> None:
    os.symlink(tree, tree / "sub" / "loop")
    assert found(tree, "**/d.log") == ["sub/d.log"]


def test_folders_that_did_not_change_are_not_read_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finder = Finder((str(tree / "**/*.log"),), ())
    first = finder.find()
    assert first.fresh
    finder.find()
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(str(path)) or scandir(path))
    assert (finder.find().fresh, read) == (False, [])
    (tree / "sub" / "new.log").write_text("new")
    fourth = finder.find()
    assert (fourth.fresh, read) == (True, [str(tree / "sub")])
    assert str(tree / "sub/new.log") in [each.path for each in fourth.found]


def test_an_entry_changes_its_number_when_another_file_takes_its_name(tree: Path) -> None:
    finder = Finder((str(tree / "a.*"),), ())
    before = finder.find().found[0].entry
    os.rename(tree / "c.txt", tree / "a.log")
    assert finder.find().found[0].entry != before
