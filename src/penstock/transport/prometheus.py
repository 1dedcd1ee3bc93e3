"""The text format of Prometheus, version 0.0.4: how a metric is described and how its numbers are written. Pure.

Brokers and agents tell different things; both tell them in these lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
SUMMARY: Final = "summary"
HISTOGRAM: Final = "histogram"

_NO_DIGITS: Final = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


def head_lines(name: str, kind: str, words: str) -> list[str]:
    """What stands before the numbers of a metric, once: what it means, and what kind it is."""
    return [f"# HELP {name} {one_line(words)}", f"# TYPE {name} {kind}"]


def sample_line(name: str, labels_text: str, value: float) -> str:
    """One number; `labels_text` is made by `labels_text`, because many numbers share their labels."""
    return f"{name}{labels_text} {number_text(value)}"


def labels_text(labels: Mapping[str, str]) -> str:
    """`{topic="orders",partition="0"}`, or nothing."""
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_quoted(value)}"' for name, value in labels.items()]) + "}"


def one_line(words: str) -> str:
    """Words as they may stand in a comment."""
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    return _NO_DIGITS.get(text, text)


def _quoted(value: str) -> str:
    if not value.isascii():
        # Names of files may be no text at all; a page that cannot be encoded would be none.
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
