"""Small charts of text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
HEIGHT: Final = 6
WIDE: Final = 3
"""Characters of a column; one less where there is no room."""


def wide(columns: int, room: int) -> int:
    """How wide columns are, so that all of them fit into `room` if they can."""
    return WIDE if columns * WIDE <= room else WIDE - 1


def columns(
    values: Sequence[float], marked: Sequence[float], height: int = HEIGHT, column_cells: int = WIDE
) -> list[Text]:
    """Columns beside each other, highest line first. Of each, `marked` at its foot has another colour."""
    most = max(values, default=0) or 1
    lines = []
    for row in range(height, 0, -1):
        line = Text()
        for value, part in zip(values, marked, strict=True):
            cell = _EIGHTHS[_eighths(value, most, height, row)]
            style = "red" if _eighths(part, most, height, row) >= 4 else "blue"
            line.append(cell * (column_cells - 1) + " ", style)
        lines.append(line)
    return lines


def _eighths(value: float, most: float, height: int, row: int) -> int:
    """How much of a cell in that row (1 is the lowest) a column of that value fills."""
    return max(0, min(8, round(value / most * height * 8) - (row - 1) * 8))


def labels(names: Sequence[str], every: int, column_cells: int = WIDE) -> str:
    """Names under columns, each `every` columns."""
    return "".join(name.ljust(column_cells * every) for name in names[::every])
