"""mask: the step."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.agent.routing.batch import Batch
from penstock.agent.transforms.conditions import read_pattern
from penstock.agent.transforms.masking.finders import CARD_DIGITS_MIN, FINDERS, Finder, Instead
from penstock.agent.transforms.step import Run, Step, Surroundings
from penstock.conditions.paths import Fields, getter, setter, wrong_path
from penstock.conditions.patterns import compile_pattern
from penstock.conditions.texts import as_text, to_bytes
from penstock.declared.fields import Table
from penstock.declared.mistakes import did_you_mean

WHOLE: Final = "whole"
STARS: Final = "***"
HASH_BYTES: Final = 12
HASH_KEY_CHARACTERS_MIN: Final = 8


@dataclass(frozen=True, slots=True)
class Mask:
    """Replaces what it finds in every text of an event, or in the named fields only."""

    title: str
    kinds: tuple[str, ...]
    """Names of finders, or `whole`."""
    patterns: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Fields to look into; none means all of the event."""
    replacement: str = STARS
    hash_key: bytes | None = field(default=None, repr=False)
    """With a key equal values have equal hashes, which nobody without the key can make."""

    def make(self, around: Surroundings) -> Run:
        return _Masking(self, lines_go_on=around.encode == "raw").run

    def line_hider(self) -> Callable[[bytes], bytes]:
        """What masks a line that has no fields, as far as it can be told by its looks. Other bytes stay as they are."""
        return _Masking(self).hide_line


class _Masking:
    """The step as it runs."""

    def __init__(self, step: Mask, *, lines_go_on: bool = False) -> None:
        self._title, self._lines_go_on = step.title, lines_go_on
        self._whole = WHOLE in step.kinds
        own = [compile_pattern(pattern).replace for pattern in step.patterns]
        self._finders: list[Finder] = [*own, *(FINDERS[kind] for kind in step.kinds if kind != WHOLE)]
        self._instead = _instead(step)
        self._spots = [(getter(path), setter(path)) for path in step.places]

    def run(self, batch: Batch) -> None:
        if (batch.fields is None and not self._spots) or self._lines_go_on:
            batch.values = [self.hide_line(value) for value in batch.values]
        if batch.fields is not None or self._spots:
            batch.each(self._in_spots if self._spots else self._everywhere, self._title)

    def hide_line(self, line: bytes) -> bytes:
        text = line.decode("utf-8", "surrogateescape")
        masked = self._mask(text)
        return line if masked == text else masked.encode("utf-8", "surrogateescape")

    def _everywhere(self, fields: Fields) -> None:
        for name, value in fields.items():
            # Replacing a value does not disturb the walk: no name comes or goes.
            fields[name] = self._clean(value)

    def _in_spots(self, fields: Fields) -> None:
        for get, put in self._spots:
            value = get(fields)
            if value is not None:
                put(fields, self._clean(value))

    def _mask(self, text: str) -> str:
        for finder in self._finders:
            text = finder(self._instead, text)
        return text

    def _clean(self, value: Any) -> Any:
        if self._whole and value is not None:
            return self._instead(as_text(value))
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, dict):
            return {name: self._clean(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return list(map(self._clean, value))
        if type(value) is int and value >= 10 ** (CARD_DIGITS_MIN - 1):
            # The number of a card may be a number to JSON.
            text = str(value)
            masked = self._mask(text)
            return value if masked == text else masked
        return value


def _instead(step: Mask) -> Instead:
    if step.hash_key is None:
        return lambda _: step.replacement
    # blake2 takes keys of up to 64 bytes; a longer one is as good as its hash.
    key = step.hash_key if len(step.hash_key) <= 64 else hashlib.blake2b(step.hash_key).digest()
    return lambda found: hashlib.blake2b(to_bytes(found), digest_size=HASH_BYTES, key=key).hexdigest()


def read_mask(table: Table, title: str) -> Step | None:
    kinds, patterns = _read_kinds(table)
    places = table.text_or_texts("in")
    for path in places:
        wrong = wrong_path(path)
        if wrong is not None:
            table.wrong("in", wrong)
    if WHOLE in kinds and not places:
        table.wrong("mask", 'mask = "whole" replaces whole fields: name them with in = ["password"]')
    replacement, key = table.text("with"), _read_hash_key(table)
    if replacement is not None and key is not None:
        table.wrong("with", "either a fixed text (with) or a hash (hash_key), not both")
    return Mask(title, kinds, patterns, places, replacement or STARS, key)


def _read_kinds(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    kinds, patterns = [], []
    given = table.text_or_texts("mask")
    for text in given:
        if len(text) > 2 and text[0] == text[-1] == "/":
            pattern = read_pattern(table, "mask", text[1:-1])
            if pattern is not None:
                patterns.append(pattern.text)
        elif text in FINDERS or text == WHOLE:
            kinds.append(text)
        else:
            guess = did_you_mean(text, [*FINDERS, WHOLE])
            table.wrong("mask", f"{text!r} is nothing to look for{guess} A pattern of your own stands between slashes")
    if table.values.get("mask") == []:
        table.wrong("mask", f"mask names nothing: write some of {', '.join(FINDERS)}, {WHOLE} or a /pattern/")
    return tuple(kinds), tuple(patterns)


def _read_hash_key(table: Table) -> bytes | None:
    key, name = table.text("hash_key"), table.text("hash_key_env")
    if key is not None and name is not None:
        table.wrong("hash_key_env", "the key is either here (hash_key) or in the environment (hash_key_env)")
    source = "hash_key" if name is None else "hash_key_env"
    if name is not None:
        key = os.environ.get(name)
        if not key:
            table.wrong("hash_key_env", f"the variable {name} is not set: it must hold the key of the hash")
            return None
    if key is not None and len(key) < HASH_KEY_CHARACTERS_MIN:
        table.wrong(
            source, f"a key of {len(key)} characters is guessed quickly: take {HASH_KEY_CHARACTERS_MIN} or more"
        )
    return None if key is None else key.encode()
