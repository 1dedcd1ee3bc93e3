"""A file that others read at any moment: they see the one before or the new one, and nothing beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from penstock.whole_files import OWNERS_ALONE, write_whole


def test_the_new_text_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for text in ("a long text\n", "größe", ""):
        write_whole(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_whoever_reads_meanwhile_reads_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "state.json", list[str]()
    write_whole(path, "before")
    replace = os.replace

    def looking(source: Path, target: Path) -> None:
        seen.append(path.read_text())
        replace(source, target)

    monkeypatch.setattr(os, "replace", looking)
    write_whole(path, "after")
    assert (seen, path.read_text()) == (["before"], "after")


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_whole(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\udcff")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_a_private_file_is_its_owners_alone_from_the_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text("anybody's")
    path.chmod(0o644)
    write_whole(path, "secret", mode=OWNERS_ALONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
