"""The headers of records: where they come from, and what is to be said of single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from penstock.agent.portion import MALFORMED, Headers, Origin, Portion
from penstock.agent.routing.routing import ERROR_HEADER, MARK_HEADER
from penstock.conditions.texts import to_bytes

Shared: TypeAlias = tuple[tuple[str, bytes], ...]


class HeaderWriter:
    """Writes the headers that an input wants."""

    def __init__(self, names: tuple[str, ...] | None) -> None:
        self._names = names
        self.with_offset = names is not None and "offset" in names

    def shared(self, origin: Origin) -> Shared:
        """Those that all events of an origin have; what the origin does not know is left out."""
        names = self._names
        if names is None:
            names = ("host", "path") if origin.path else ("host", "peer")
        named = [(name, str(getattr(origin, name))) for name in names if name != "offset"]
        return tuple((name, to_bytes(value)) for name, value in named if value)

    def write(self, portion: Portion, rows: Sequence[int], why: Mapping[int, str]) -> list[Headers] | None:
        """For each of these events of a portion; `why` has what went wrong with some. None when there are none."""
        shared, marks, positions = self.shared(portion.origin), portion.marks, portion.positions
        headers: list[Headers]
        if self.with_offset and positions is not None:
            headers = [(*shared, ("offset", b"%d" % positions[row])) for row in rows]
        elif shared or marks or why:
            headers = [shared] * len(rows)
        else:
            return None
        if marks or why:
            for place, row in enumerate(rows):
                if row in marks or row in why:
                    headers[place] = (*headers[place], *_remarks(marks.get(row), why.get(row)))
        return headers


def _remarks(mark: str | None, why: str | None) -> Shared:
    said = (MARK_HEADER, to_bytes(mark or MALFORMED))
    return (said,) if why is None else (said, (ERROR_HEADER, to_bytes(why)))
