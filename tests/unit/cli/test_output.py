"""Tables and YAML."""

from __future__ import annotations

from penstock.cli.output import table, yaml_lines


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    assert table(("NAME", "COUNT"), [("a", 1), ("longer", 20)]) == "NAME    COUNT\na           1\nlonger     20"


def test_a_table_without_rows_is_its_headings() -> None:
    assert table(("NAME", "COUNT"), []) == "NAME  COUNT"


def test_yaml_is_in_block_style() -> None:
    data = {"topics": [{"name": "a", "ids": [1, 2]}, {"name": "b", "ids": []}], "max.bytes": None}
    assert yaml_lines(data) == [
        "topics:",
        '  - name: "a"',
        "    ids:",
        "      - 1",
        "      - 2",
        '  - name: "b"',
        "    ids: []",
        '"max.bytes": null',
    ]


def test_words_that_yaml_would_misread_are_quoted() -> None:
    assert yaml_lines({"on": "off", "plain": "no"}) == ['"on": "off"', 'plain: "no"']


def test_empty_things_stay_empty() -> None:
    assert yaml_lines([]) == ["[]"]
    assert yaml_lines({}) == ["{}"]
