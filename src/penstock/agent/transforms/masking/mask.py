"""mask: the step."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.agent.portion import Fields
from penstock.agent.routing.batch import Batch
from penstock.agent.routing.paths import getter, setter, wrong_path
from penstock.agent.routing.texts import as_text, to_bytes
from penstock.agent.transforms.conditions import read_pattern
from penstock.agent.transforms.masking.finders import CARD_DIGITS_MIN, FINDERS, Finder, Instead
from penstock.agent.transforms.patterns import compile_pattern
from penstock.agent.transforms.step import Run, Step, Surroundings
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
        clean = self._cleaner()
        spots = [(getter(path), setter(path)) for path in self.places]
        lines_go_on = around.encode == "raw"

        def everywhere(fields: Fields) -> None:
            for name, value in fields.items():
                # Replacing a value does not disturb the walk; no name comes or goes.
                fields[name] = clean(value)

        def in_spots(fields: Fields) -> None:
            for get, put in spots:
                value = get(fields)
                if value is not None:
                    put(fields, clean(value))

        def run(batch: Batch) -> None:
            if (batch.fields is None and not spots) or lines_go_on:
                batch.values = [self.hide_line(value) for value in batch.values]
            if batch.fields is not None or spots:
                batch.each(in_spots if spots else everywhere, self.title)

        return run

    def hide_line(self, line: bytes) -> bytes:
        """A line that has no fields, with all that can be told by its looks masked. Other bytes stay as they are."""
        text = line.decode("utf-8", "surrogateescape")
        masked = self._mask(text)
        return line if masked == text else masked.encode("utf-8", "surrogateescape")

    def _mask(self, text: str) -> str:
        for finder in self._finders():
            text = finder(self._instead(), text)
        return text

    def _finders(self) -> list[Finder]:
        own = [compile_pattern(pattern).replace for pattern in self.patterns]
        return [*own, *(FINDERS[kind] for kind in self.kinds if kind != WHOLE)]

    def _instead(self) -> Instead:
        if self.hash_key is None:
            return lambda _: self.replacement
        # blake2 takes keys of up to 64 bytes; a longer one is as good as its hash.
        key = self.hash_key if len(self.hash_key) <= 64 else hashlib.blake2b(self.hash_key).digest()
        return lambda found: hashlib.blake2b(to_bytes(found), digest_size=HASH_BYTES, key=key).hexdigest()

    def _cleaner(self) -> Callable[[Any], Any]:
        finders, instead, whole = self._finders(), self._instead(), WHOLE in self.kinds

        def clean(value: Any) -> Any:
            if whole and value is not None:
                return instead(as_text(value))
            if isinstance(value, str):
                for finder in finders:
                    value = finder(instead, value)
                return value
            if isinstance(value, dict):
                return {name: clean(inner) for name, inner in value.items()}
            if isinstance(value, list):
                return list(map(clean, value))
            if type(value) is int and value >= 10 ** (CARD_DIGITS_MIN - 1):
                # The number of a card may be a number to JSON.
                text = str(value)
                masked = clean(text)
                return value if masked == text else masked
            return value

        return clean


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
