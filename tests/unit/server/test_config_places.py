"""What is wrong with a node's file is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.config import BadSettings
from penstock.model.errors import PenstockError
from penstock.server.config_places import lines_of, placed
from penstock.server.launch import load_settings

PROPERTIES = """\
# A comment.
node.id = 1

log.dirs=/a,\\
  /b
log.segment.byte : 3
node.id = 2
"""
TOML = """\
"node.id" = 1
[log]
dirs = ["/a"]
segment.byte = 3
"""


def test_properties_have_lines_and_the_later_one_wins() -> None:
    assert lines_of(PROPERTIES, toml=False) == {"node.id": 7, "log.dirs": 4, "log.segment.byte": 6}


def test_names_in_tables_of_toml_have_lines_too() -> None:
    assert lines_of(TOML, toml=True) == {"node.id": 1, "log.dirs": 3, "log.segment.byte": 4}


def test_problems_stand_in_the_order_of_the_file_and_what_is_missing_comes_last() -> None:
    problems = ["process.roles must be set", "log.segment.byte is not a property", "Invalid value x for node.id: none"]
    assert placed(problems, "f", {"node.id": 1, "log.segment.byte": 4}) == [
        "f:1: Invalid value x for node.id: none",
        "f:4: log.segment.byte is not a property",
        "process.roles must be set",
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("s.toml", 'a = 1\nb = "x\n', "s.toml:2:7: this is not TOML: "),
        ("s.toml", "a = 1\n[log\n", "s.toml:2:5: this is not TOML: "),
        ("s.properties", "a=1\nb=\\u12\n", "s.properties: line 2: \\u12 is not a unicode escape"),
    ],
)
def test_what_cannot_be_parsed_is_told_with_its_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PenstockError) as wrong:
        load_settings(str(tmp_path / name))
    assert f"{tmp_path}/{words}" in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "line"), [("s.toml", '"log.segment.byte" = 3'), ("s.properties", "log.segment.byte=3")]
)
def test_a_property_that_is_none_is_told_with_its_line(tmp_path: Path, name: str, line: str) -> None:
    path = tmp_path / name
    path.write_text(f"# One.\n# Two.\n{line}\n")
    with pytest.raises(BadSettings) as bad:
        load_settings(str(path))
    assert bad.value.problems[0].startswith(f"{path}:3: log.segment.byte is not a property; did you mean")
