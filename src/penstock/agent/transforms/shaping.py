"""add, drop, rename, keep: which fields an event has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from penstock.agent.routing.batch import Batch
from penstock.agent.routing.reading import read_template
from penstock.agent.routing.templates import Fill, Template
from penstock.agent.transforms.step import Run, Surroundings
from penstock.conditions.paths import MESSAGE, Fields, Setter, getter, remover, setter, wrong_path
from penstock.declared.fields import Table, kind_of


@dataclass(frozen=True, slots=True)
class Add:
    """New fields: fixed values, or texts with holes. One whose hole has nothing to fill it is left out."""

    title: str
    additions: tuple[tuple[str, Any], ...]
    """By path: a Template for texts, else the value."""
    overwrite: bool = True

    def make(self, around: Surroundings) -> Run:
        # What is fixed for all events is bound once a portion; only templates with fields cost per event.
        def run(batch: Batch) -> None:
            fixed: Fields = {}
            acts: list[tuple[str, Setter, Fill]] = []
            for path, value in self.additions:
                bound = _bound(value, batch)
                if callable(bound):
                    acts.append((path, setter(path), bound))
                elif bound is not None:
                    fixed[path] = bound
            self._add_fixed(batch, fixed)
            for path, put, fill in acts:
                self._add_filled(batch, path, put, fill)

        return run

    def _add_fixed(self, batch: Batch, fixed: Fields) -> None:
        flat = not any("." in path for path in fixed)
        if flat and self.overwrite:
            for fields in batch.own_fields():
                fields.update(fixed)
        elif flat:
            batch.fields = [{**fixed, **fields} for fields in batch.own_fields()]
        else:
            for path, value in fixed.items():
                self._add_filled(batch, path, setter(path), lambda _, value=value: value)

    def _add_filled(self, batch: Batch, path: str, put: Setter, fill: Any) -> None:
        has = getter(path)

        def act(fields: Fields) -> None:
            if self.overwrite or has(fields) is None:
                value = fill(fields)
                if value is not None:
                    put(fields, value)

        batch.each(act, self.title)


@dataclass(frozen=True, slots=True)
class Drop:
    title: str
    paths: tuple[str, ...]

    def make(self, around: Surroundings) -> Run:
        takes = [remover(path) for path in self.paths]

        def run(batch: Batch) -> None:
            if batch.fields is None and MESSAGE not in self.paths:
                return
            for fields in batch.own_fields():
                for take in takes:
                    take(fields)

        return run


@dataclass(frozen=True, slots=True)
class Rename:
    title: str
    names: tuple[tuple[str, str], ...]

    def make(self, around: Surroundings) -> Run:
        moves = [(remover(old), setter(new)) for old, new in self.names]

        def act(fields: Fields) -> None:
            # All are taken before any is put: names can be swapped.
            for put, value in [(put, take(fields)) for take, put in moves]:
                if value is not None:
                    put(fields, value)

        def run(batch: Batch) -> None:
            if batch.fields is not None or any(old == MESSAGE for old, _ in self.names):
                batch.each(act, self.title)

        return run


@dataclass(frozen=True, slots=True)
class Keep:
    title: str
    paths: tuple[str, ...]

    def make(self, around: Surroundings) -> Run:
        moves = [(getter(path), setter(path)) for path in self.paths]
        flat = [path for path in self.paths if "." not in path]

        def only(fields: Fields) -> Fields:
            left: Fields = {}
            for get, put in moves:
                value = get(fields)
                if value is not None:
                    put(left, value)
            return left

        def run(batch: Batch) -> None:
            if batch.fields is None and MESSAGE in self.paths:
                return
            if len(flat) == len(self.paths):
                batch.fields = [
                    {path: fields[path] for path in flat if path in fields} for fields in batch.own_fields()
                ]
            else:
                batch.fields = [only(fields) for fields in batch.own_fields()]

        return run


def read_add(table: Table, title: str) -> Add:
    additions: list[tuple[str, Any]] = []
    inner = table.table("add")
    for path, value in _flat({} if inner is None else inner.values):
        key = path.split(".")[0]
        if inner is None or not _good_path(inner, key, path):
            continue
        if isinstance(value, str):
            template = read_template(inner, key, value)
            if template is not None:
                constant = template.constant
                additions.append((path, template if constant is None else constant))
        elif isinstance(value, (date, datetime, time)):
            additions.append((path, value.isoformat()))
        else:
            additions.append((path, _frozen(value)))
    if inner is not None and not inner.values:
        table.wrong("add", 'add names nothing: write add = { env = "prod" }')
    return Add(title, tuple(additions), table.flag("overwrite", True))


def read_drop(table: Table, title: str) -> Drop:
    return Drop(title, _read_paths(table, "drop"))


def read_keep(table: Table, title: str) -> Keep:
    return Keep(title, _read_paths(table, "keep"))


def read_rename(table: Table, title: str) -> Rename:
    inner = table.table("rename")
    names = []
    for old, new in _flat({} if inner is None else inner.values):
        key = old.split(".")[0]
        if inner is None or not _good_path(inner, key, old):
            continue
        if not isinstance(new, str):
            inner.wrong(key, f"the new name of {old} must be a text in quotes, not {kind_of(new)}")
        elif _good_path(inner, key, new):
            names.append((old, new))
    if inner is not None and not inner.values:
        table.wrong("rename", 'rename names nothing: write rename = { old = "new" }')
    return Rename(title, tuple(names))


def _read_paths(table: Table, verb: str) -> tuple[str, ...]:
    paths = table.text_or_texts(verb)
    if not paths and table.values.get(verb) == []:
        table.wrong(verb, f'{verb} names nothing: write {verb} = ["field"]')
    return tuple(path for path in paths if _good_path(table, verb, path))


def _good_path(table: Table, key: str, path: str) -> bool:
    wrong = wrong_path(path)
    if wrong is not None:
        table.wrong(key, wrong)
    return wrong is None


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """`a.b = 1` is a table in a table to TOML; here it is a nested field."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found.extend(_flat(value, f"{prefix}{name}."))
        else:
            found.append((f"{prefix}{name}", value))
    return found


def _bound(value: Any, batch: Batch) -> Any:
    if not isinstance(value, Template):
        return _thawed(value)
    copied = value.copied()
    return getter(copied) if copied is not None else value.bind(batch.origin)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    return list(map(_thawed, value)) if isinstance(value, tuple) else value
