"""parse: the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from penstock.agent.routing.batch import Batch, OnError
from penstock.agent.transforms.parsing.access_log import access_log_parser
from penstock.agent.transforms.parsing.csv_rows import csv_parser
from penstock.agent.transforms.parsing.json_lines import parse_json
from penstock.agent.transforms.parsing.logfmt import parse_logfmt
from penstock.agent.transforms.parsing.parser import Parser, Text, as_str, one_by_one, with_types
from penstock.agent.transforms.step import Run, Surroundings
from penstock.conditions.paths import MESSAGE, Fields, remover, setter
from penstock.conditions.patterns import compile_pattern

ORIGINAL: Final = "original"


@dataclass(frozen=True, slots=True)
class Parse:
    """Makes fields of a line, or of one field."""

    title: str
    form: str
    """json, logfmt, csv, regex, access_log"""
    source: str = MESSAGE
    """The field that is parsed. `message` of an event that nobody understood yet is its line."""
    into: str = ""
    """Empty: the event's own fields. `http`: a nested field. `http_*`: names with a prefix."""
    keep_original: bool = False
    on_error: OnError = ""
    types: tuple[tuple[str, str], ...] = ()
    pattern: str = ""
    columns: tuple[str, ...] = ()
    delimiter: str = ","
    quote: str = '"'
    skip_header: bool = False
    log_format: str = "auto"

    def make(self, around: Surroundings) -> Run:
        return _Parsing(self).run

    def parser(self) -> Parser:
        match self.form:
            case "json":
                return parse_json
            case "logfmt":
                return with_types(one_by_one(parse_logfmt), self.types)
            case "csv":
                return with_types(one_by_one(csv_parser(self.columns, self.delimiter, self.quote)), self.types)
            case "regex":
                return with_types(one_by_one(_regex_parser(self.pattern)), self.types)
        return access_log_parser(self.log_format)


class _Parsing:
    """The step as it runs."""

    def __init__(self, step: Parse) -> None:
        self._step = step
        self._parser = step.parser()
        self._take = remover(step.source)
        self._put = _putter(step.into)

    def run(self, batch: Batch) -> None:
        step = self._step
        if step.skip_header:
            self._skip_header(batch)
        of_line = batch.fields is None and step.source == MESSAGE
        texts: list[Any] = list(batch.values) if of_line else batch.column(step.source)
        why = {} if of_line else _not_texts(texts, step.source)
        parsed = self._parser(texts)
        why = {**parsed.why, **why}
        if of_line and not step.into and not step.keep_original:
            batch.fields = parsed.fields
            batch.faithful = step.form == "json"
        else:
            self._merge(batch, parsed.fields, texts if of_line else None)
        batch.set_aside({place: f"{step.title}: {words}" for place, words in why.items()}, step.on_error)

    def _merge(self, batch: Batch, parsed: list[Fields], lines: list[Text] | None) -> None:
        keep = self._step.keep_original
        if lines is None:
            fields = batch.own_fields()
            if not keep:
                for each in fields:
                    self._take(each)
        else:
            fields = [{ORIGINAL: as_str(line)} if keep else {} for line in lines]
        put = self._put
        for each, found in zip(fields, parsed, strict=True):
            put(each, found)
        batch.fields, batch.faithful = fields, False

    def _skip_header(self, batch: Batch) -> None:
        header = list(self._step.columns)
        parse = csv_parser(header, self._step.delimiter, self._step.quote)
        rows = [parse(text) if isinstance(text, str) else {} for text in batch.column(self._step.source)]
        batch.filter([not isinstance(row, dict) or list(row.values()) != header for row in rows], self._step.title)


def _regex_parser(pattern: str) -> Callable[[str], Fields | str]:
    compiled = compile_pattern(pattern)
    names, groups = tuple(compiled.names), compiled.groups

    def parse(text: str) -> Fields | str:
        found = groups(text)
        if found is None:
            return "the pattern does not match"
        return {name: value for name, value in zip(names, found, strict=True) if value is not None}

    return parse


def _not_texts(texts: list[Any], source: str) -> dict[int, str]:
    """Notes what cannot be parsed because it is no text, and puts an empty one in its place."""
    why: dict[int, str] = {}
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            why[place] = f"there is no field {source!r}" if text is None else f"the field {source!r} is not a text"
            texts[place] = ""
    return why


def _putter(into: str) -> Callable[[Fields, Fields], None]:
    if not into:
        return lambda fields, found: fields.update(found)
    if "*" in into:
        before, _, after = into.partition("*")
        return lambda fields, found: fields.update({f"{before}{name}{after}": each for name, each in found.items()})
    return cast(Callable[[Fields, Fields], None], setter(into))
