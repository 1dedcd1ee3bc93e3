"""CSV: one row a text, its columns named in the file of the agent. Pure.

Not the csv module: a quote that is never closed makes that read on into the next event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.conditions.paths import Fields


def csv_parser(columns: Sequence[str], delimiter: str = ",", quote: str = '"') -> Callable[[str], Fields | str]:
    """What gives the fields of a row, or words about what is wrong."""
    names = tuple(columns)

    def parse(text: str) -> Fields | str:
        row = text.rstrip("\r\n")
        cells = row.split(delimiter) if quote not in row else cells_of(row, delimiter, quote)
        if isinstance(cells, str):
            return cells
        if len(cells) != len(names):
            return f"{len(cells)} columns instead of {len(names)}"
        return dict(zip(names, cells, strict=True))

    return parse


def cells_of(row: str, delimiter: str, quote: str) -> list[str] | str:
    """The cells of a row with quotes in it. A quote inside quotes is written twice."""
    cells: list[str] = []
    at = 0
    while True:
        if row.startswith(quote, at):
            end = _closing(row, at + 1, quote)
            if end < 0:
                return f"column {len(cells) + 1} has a {quote} that is not closed"
            cells.append(row[at + 1 : end].replace(quote * 2, quote))
            at = end + 1
            if at < len(row) and not row.startswith(delimiter, at):
                return f"column {len(cells)} goes on behind its closing {quote}"
        else:
            end = row.find(delimiter, at)
            cells.append(row[at:] if end < 0 else row[at:end])
            at = len(row) if end < 0 else end
        if at >= len(row):
            return cells
        at += 1


def _closing(row: str, at: int, quote: str) -> int:
    """Where the quote is that closes; -1 when there is none."""
    while True:
        at = row.find(quote, at)
        if at < 0 or not row.startswith(quote, at + 1):
            return at
        at += 2
