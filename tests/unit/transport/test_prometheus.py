"""Lines of the text format 0.0.4, which Prometheus' own parser would take."""

from __future__ import annotations

import pytest

from penstock.transport.prometheus import GAUGE, head_lines, labels_text, number_text, sample_line


def test_a_metric_is_described_in_two_lines_whatever_its_words() -> None:
    assert head_lines("size", GAUGE, "A size\nin C:\\") == ["# HELP size A size\\nin C:\\\\", "# TYPE size gauge"]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({}, ""),
        ({"topic": "orders", "partition": "0"}, '{topic="orders",partition="0"}'),
        ({"topic": 'a"b\\c\nd'}, '{topic="a\\"b\\\\c\\nd"}'),
        ({"path": "/größe"}, '{path="/größe"}'),
        ({"path": "/no\udcfftext"}, '{path="/no?text"}'),
    ],
)
def test_labels_are_quoted_and_can_be_encoded(labels: dict[str, str], text: str) -> None:
    assert labels_text(labels) == text
    labels_text(labels).encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (3.0, "3.0"), (0.25, "0.25"), (float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN")],
)
def test_numbers(value: float, text: str) -> None:
    assert number_text(value) == text
    assert sample_line("n", '{a="b"}', value) == f'n{{a="b"}} {text}'
