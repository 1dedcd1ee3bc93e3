"""Lists that are filtered, sorted and cut on this side, so that ten thousand rows cost a browser nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from penstock.console.digits import whole
from penstock.console.failures import bad_request

T = TypeVar("T")
LIMIT_MAX: Final = 1_000
Sortable = Callable[[T], Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of a list somebody looks at."""

    text: str = ""
    sort: str = ""
    descending: bool = False
    offset: int = 0
    limit: int = 100

    @classmethod
    def of(cls, query: Mapping[str, str], sorts: Collection[str]) -> Wanted:
        """Of a query string; what cannot be is told by name."""
        sort = query.get("sort", "")
        if sort and sort not in sorts:
            raise bad_request(f"sort: {sort!r} is none of {', '.join(sorted(sorts))}")
        return cls(
            query.get("q", "").strip().lower(),
            sort,
            query.get("desc", "") in ("1", "true"),
            whole_number(query, "offset", 0, 1 << 31),
            min(whole_number(query, "limit", 100, 1 << 31), LIMIT_MAX),
        )


def whole_number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    number = whole(text, most)
    if number is None:
        raise bad_request(f"{name}: {text[:100]!r} is no whole number from 0 to {most}")
    return number


def cut(
    rows: Sequence[T], wanted: Wanted, named: Callable[[T], str], sorts: Mapping[str, Sortable[T]]
) -> tuple[int, list[T]]:
    """How many rows match, and those to show. What has no value to sort by comes last, in both directions."""
    matching = [row for row in rows if wanted.text in named(row).lower()] if wanted.text else list(rows)
    matching.sort(key=named)
    if wanted.sort:
        by = sorts[wanted.sort]
        known = [row for row in matching if by(row) is not None]
        unknown = [row for row in matching if by(row) is None]
        known.sort(key=by, reverse=wanted.descending)
        matching = known + unknown
    elif wanted.descending:
        matching.reverse()
    return len(matching), matching[wanted.offset : wanted.offset + wanted.limit]
