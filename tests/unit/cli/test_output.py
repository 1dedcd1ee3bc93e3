"""Tables and YAML."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.output import table, wrapped, yaml_lines

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, width=32)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    assert table(("NAME", "COUNT"), [("a", 1), ("longer", 20)]) == "NAME    COUNT\na           1\nlonger     20"


def test_a_table_without_rows_is_its_headings() -> None:
    assert table(("NAME", "COUNT"), []) == "NAME  COUNT"


def test_prose_is_broken_between_words_and_commands_are_kept_whole() -> None:
    line = "    try: read their logs; one that is gone for good: `penstock cluster quorum remove-voter ID`, or start it"
    assert wrapped(line, indent=6, width=60).splitlines() == [
        "    try: read their logs; one that is gone for good:",
        "      `penstock cluster quorum remove-voter ID`, or start it",
    ]
    assert wrapped(line, indent=6, width=30).splitlines()[2:4] == [
        "      `penstock cluster quorum remove-voter ID`,",
        "      or start it",
    ]
    assert wrapped(line, indent=6, width=len(line)) == line
    assert wrapped("an odd ` is a word", indent=2, width=10) == "an odd `\n  is a\n  word"


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


@given(plain)
def test_a_yaml_parser_reads_what_was_written(data: object) -> None:
    assert yaml.safe_load("\n".join(yaml_lines(data))) == data


def test_what_is_not_known_is_a_dash_among_numbers() -> None:
    assert table(("NAME", "COUNT"), [("a", None), ("b", 200)]) == "NAME  COUNT\na         -\nb       200"


WIDE = ("GROUP", "STATE", "COORDINATOR"), [("a-long-name-of-a-group", "Stable", 1), ("b", None, 20)]


def test_a_table_that_does_not_fit_is_folded_into_rows_of_their_own() -> None:
    assert (
        table(*WIDE, width=30)
        == """\
GROUP        a-long-name-of-a-group
STATE        Stable
COORDINATOR  1

GROUP        b
STATE        -
COORDINATOR  20"""
    )


def test_a_table_that_fits_exactly_stays_one() -> None:
    whole = table(*WIDE)
    widest = max(map(len, whole.splitlines()))
    assert table(*WIDE, width=widest) == whole
    assert table(*WIDE, width=widest - 1) != whole


@given(
    st.lists(
        st.tuples(st.text("abc-", max_size=40), st.integers(), st.text("xyz", max_size=90)), min_size=1, max_size=5
    ),
    st.integers(20, 80),
)
def test_nothing_of_a_table_is_cut_whatever_the_width(rows: list[tuple[str, int, str]], width: int) -> None:
    words = table(("ID", "N", "WHAT"), rows, width=width).split()
    assert all(str(cell) in words for row in rows for cell in row if str(cell))
