"""The reference of pipeline files as Markdown: `python -m penstock.spark.pipeline.key_reference`.

`docs/reference/pipelines.md` is this text; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.spark.pipeline.keys import PARTS, Part

_INTRODUCTION: Final = """\
# The keys of a pipeline file

This page is printed from `penstock.spark.pipeline.keys`; do not edit it by hand. [Pipelines](../guides/pipelines.md)
shows them at work, and [one stream, many tables](../guides/one-stream-many-tables.md) and [a table that follows
changes](../guides/keyed-tables.md) from nothing in ten minutes each.

A key that means nothing where it stands, a value that it cannot have and keys that do not go together are told with
their line and column by `penstock pipeline validate FILE`, before anything runs. An interval is a number and a unit,
such as `10 seconds` or `1 hour 30 minutes`. Paths begin where the file lies, tables below the warehouse.
"""


def reference_page() -> str:
    """The whole page, ending in a newline."""
    return "\n".join([_INTRODUCTION, *(line for part in PARTS for line in _section(part))])


def _section(part: Part) -> Iterator[str]:
    yield f"## {part.title}\n"
    where = "At the top of the file" if part.where == "top" else f"`{part.where}`"
    yield f"{where}; [at work](../guides/{part.guide}).\n"
    yield "| key | takes | when left out | what it says |"
    yield "|---|---|---|---|"
    for key in part.keys:
        yield f"| `{key.name}` | {key.takes} | {key.default} | {key.says} |"
    yield ""


if __name__ == "__main__":
    print(reference_page(), end="")
