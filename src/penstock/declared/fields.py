"""Reading keys of TOML tables by their kind; what is wrong is noted with its place, and reading goes on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final

from penstock.declared.amounts import duration_of, duration_text, size_of, size_text
from penstock.declared.mistakes import Mistake, did_you_mean
from penstock.declared.positions import Path, Place, Positions

SIZE_MAX_BYTES: Final = 1 << 50
DURATION_MAX_MS: Final = 366 * 86_400_000


class Notes:
    """What was found so far, in any order."""

    def __init__(self, positions: Positions) -> None:
        self.positions = positions
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []

    def wrong(self, path: Path, words: str) -> None:
        self.wrong_at(self.positions.of(path), words)

    def wrong_at(self, place: Place, words: str) -> None:
        self.mistakes.append(Mistake(place.line, place.column, words))

    def warn(self, path: Path, words: str) -> None:
        place = self.positions.of(path)
        self.warnings.append(Mistake(place.line, place.column, words))


class Table:
    """One table while it is read. Keys that nobody asked for are mistakes when it is finished."""

    def __init__(self, values: Mapping[str, Any], path: Path, notes: Notes, title: str) -> None:
        self.values, self.path, self.notes, self.title = values, path, notes, title
        self._asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    @property
    def line(self) -> int:
        return self.notes.positions.of(self.path).line

    def wrong(self, key: str | None, words: str) -> None:
        self.notes.wrong(self.path if key is None else (*self.path, key), words)

    def value(self, key: str) -> Any:
        """Whatever is there, for keys that may be of several kinds; None when nothing is."""
        return self._get(key)

    def text(self, key: str) -> str | None:
        """A string that is not empty."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(key, f"{key} must be a text in quotes, not {kind_of(value)}")
            return None
        if not value.strip():
            self.wrong(key, f"{key} is empty")
            return None
        return value

    def required_text(self, key: str, why: str) -> str:
        """A string that must be there; empty when it is not, which is noted."""
        value = self.text(key)
        if value is None and key not in self.values:
            self.wrong(None, f"{self.title} has no {key}: {why}")
        return value or ""

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        value = self.text(key)
        known = list(choices)
        if value is None or value in known:
            return value or default
        self.wrong(key, f"{key} = {value!r} is not known{did_you_mean(value, known)}")
        return default

    def moment(self, key: str) -> str | None:
        """A text, or a time as TOML writes it."""
        value = self._get(key)
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, date):
            return f"{value.isoformat()}T00:00:00+00:00"
        return self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.wrong(key, f'{key} must be a list of texts such as ["a", "b"], not {kind_of(value)}')
            return ()
        for index, item in enumerate(value):
            if not isinstance(item, str) or not item.strip():
                self.notes.wrong((*self.path, key, index), f"{key} must hold texts, not {kind_of(item)}")
        return tuple(item for item in value if isinstance(item, str) and item.strip())

    def text_or_texts(self, key: str) -> tuple[str, ...]:
        if isinstance(self.values.get(key), list):
            return self.texts(key)
        value = self.text(key)
        return () if value is None else (value,)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(key, f"{key} must be true or false, not {kind_of(value)}")
        return value is True

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        """A whole number from `low` to `high`, or a text of one: that is what a variable leaves."""
        value = self._get(key)
        if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
            value = int(value)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(key, f"{key} must be a whole number such as {default}, not {kind_of(value)}")
            return default
        if not low <= value <= high:
            self.wrong(key, f"{key} = {value} is out of bounds: it must be from {low} to {high}")
            return default
        return value

    def size_bytes(self, key: str, default: int, low: int = 1, high: int = SIZE_MAX_BYTES) -> int:
        """`"64 MB"`, `"1 GiB"` or a number of bytes."""
        value = self._get(key)
        if value is None:
            return default
        size = size_of(value) if isinstance(value, str) else value
        if isinstance(size, bool) or not isinstance(size, int):
            self.wrong(
                key, f'{key} must be a size such as "{size_text(default)}" or a number of bytes, not {shown(value)}'
            )
            return default
        if not low <= size <= high:
            words = f"it must be from {size_text(low)} to {size_text(high)}"
            self.wrong(key, f"{key} = {shown(value)} is out of bounds: {words}")
            return default
        return size

    def duration_ms(self, key: str, default: int, low: int = 0, high: int = DURATION_MAX_MS) -> int:
        """`"20ms"`, `"5s"`, `"2m"`, `"1h"`. A number alone is refused: nobody could tell its unit."""
        value = self._get(key)
        if value is None:
            return default
        duration = duration_of(value) if isinstance(value, str) else None
        if duration is None:
            self.wrong(
                key, f'{key} must be a time with its unit such as "{duration_text(default)}", not {shown(value)}'
            )
            return default
        if not low <= duration <= high:
            words = f"it must be from {duration_text(low)} to {duration_text(high)}"
            self.wrong(key, f"{key} = {shown(value)} is out of bounds: {words}")
            return default
        return duration

    def options(self, key: str) -> dict[str, str]:
        """A table whose values are handed on as texts."""
        value = self._get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong(key, f"{key} must be a table such as {{ name = 1 }}, not {kind_of(value)}")
            return {}
        found = {}
        for names, each in _flat(value):
            name = ".".join(names)
            if isinstance(each, (str, int, float)):
                found[name] = str(each).lower() if isinstance(each, bool) else str(each)
            else:
                words = f"{name} in {key} must be a text, a number or true or false, not {kind_of(each)}"
                self.notes.wrong((*self.path, key, *names), words)
        return found

    def table(self, key: str) -> Table | None:
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(key, f"{key} must be a table, not {kind_of(value)}")
            return None
        return Table(value, (*self.path, key), self.notes, key)

    def named_tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """`[key.NAME]`, each with its name."""
        whole = self.table(key)
        if whole is None:
            return
        for name, value in whole.values.items():
            if isinstance(value, Mapping):
                yield name, Table(value, (*whole.path, name), self.notes, f"{key}.{name}")
            else:
                whole.wrong(name, f"{key} has tables of its own: write [{key}.{name}]")

    def table_list(self, key: str) -> Iterator[Table]:
        """`[[key]]`, in the order of the file."""
        value = self._get(key)
        if value is None:
            return
        if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
            self.wrong(key, f"{key} are written one by one, each under its own [[{key}]]")
            return
        for index, each in enumerate(value):
            yield Table(each, (*self.path, key, index), self.notes, f"step {index + 1}")

    def finish(self) -> None:
        """Notes every key that has no meaning here."""
        for key in self.values:
            if key not in self._asked:
                self.wrong(key, f"{key!r} means nothing in {self.title}{did_you_mean(key, sorted(self._asked))}")

    def _get(self, key: str) -> Any:
        self._asked.add(key)
        return self.values.get(key)


def kind_of(value: object) -> str:
    """What a value is, in the words of people."""
    match value:
        case bool():
            return "true or false"
        case str():
            return "a text" if value.strip() else "an empty text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case Mapping():
            return "a table"
    return "a time" if isinstance(value, (datetime, date)) else type(value).__name__


def shown(value: object) -> str:
    """A text or a number as it was written; what else it is in words."""
    plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return repr(value) if plain else kind_of(value)


def _flat(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """`a.b = 1` is a table in a table to TOML; for options a dot is part of the name."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*above, name))
        else:
            yield (*above, name), value
