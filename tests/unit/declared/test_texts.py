"""Files that people write are text."""

from __future__ import annotations

import pytest

from penstock.declared.mistakes import text_of
from penstock.model.errors import PenstockError


def test_what_is_no_text_is_told_with_its_line() -> None:
    with pytest.raises(PenstockError, match=r"f\.toml:2: this is not UTF-8 text: invalid start byte"):
        text_of(b'name = "x"\ntopic = "\xff"\n', "f.toml")


def test_lines_of_other_systems_are_lines() -> None:
    assert text_of(b'name = "x"\r\nother = 1\r\n', "f.toml") == 'name = "x"\nother = 1\n'
