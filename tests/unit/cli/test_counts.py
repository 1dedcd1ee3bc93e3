"""One of something is not called several."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.model.units import count

SOURCE = Path(penstock.__file__).parent
SPEAKING = [
    *sorted((SOURCE / "cli").rglob("*.py")),
    *sorted((SOURCE / "client").rglob("*.py")),
    *sorted((SOURCE / "agent" / "view").rglob("*.py")),
    SOURCE / "spark" / "pipeline" / "view.py",
]
"""What says something to people again and again."""

NOUNS = re.compile(
    r" (APIs|batches|brokers|clients|commits|cores|events|failures|files|groups|inputs|letters|lines|members|mistakes"
    r"|nodes|offsets|partitions|ports|positions|problems|records|replicas|resources|rotations|rounds|rows|seeds|sinks"
    r"|steps|tables|topics|tries|voters|(log )?directories)\b(?!/s)"
)


@pytest.mark.parametrize(
    ("noun", "number", "words"),
    [
        ("record", 1, "1 record"),
        ("record", 0, "0 records"),
        ("record", 2, "2 records"),
        ("batch", 2, "2 batches"),
        ("directory", 2, "2 directories"),
        ("directory", 1, "1 directory"),
        ("day", 3, "3 days"),
        ("try", 51, "51 tries"),
        ("record", 1_234_567, "1234567 records"),
    ],
)
def test_a_count_agrees_with_its_noun(noun: str, number: int, words: str) -> None:
    assert count(noun, number) == words


def test_large_counts_may_be_grouped() -> None:
    assert count("record", 1_234_567, grouped=True) == "1,234,567 records"


def fixed_plurals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            for value, after in zip(node.values, node.values[1:], strict=False):
                counted = isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)
                if counted and NOUNS.match(str(after.value)):  # type: ignore[attr-defined]
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"


def test_no_sentence_has_a_plural_that_does_not_look_at_its_number() -> None:
    assert [each for path in SPEAKING for each in fixed_plurals(path)] == []
