"""Python source being written: lines, fresh names and the constants that the lines refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

from penstock.protocol.making import shared_default
from penstock.protocol.schema import STRUCT_DEFAULT, Field, Schema, schema_of
from penstock.protocol.versions import NO_VERSIONS

WIDTHS = {"b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}

CODES = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "boolean": "?",
    "uuid": "16s",
}


class Source:
    """The text of one function and the namespace it will run in."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._depth = 1
        self._names = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.add(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name for `value`; equal prefixes with the same object share one."""
        for name, known in self.namespace.items():
            if known is value and name.startswith(prefix):
                return name
        name = self.fresh(prefix)
        self.namespace[name] = value
        return name

    def structs(self, codes: str, method: str) -> str:
        """A name for the bound method of the big-endian struct `codes`."""
        name = f"{method}_{codes.replace('?', 'bool')}"
        if name not in self.namespace:
            self.namespace[name] = getattr(Struct(">" + codes), "pack" if method == "pack" else "unpack_from")
        return name

    def build(self, signature: str, label: str) -> Callable[..., Any]:
        """Compile; constants become default arguments, because a local is cheaper to load than a global."""
        bound = ", ".join(f"{name}={name}" for name in self.namespace)
        head = f"def {signature[:-1]}{', *, ' if bound else ''}{bound}):"
        code = compile("\n".join([head, *self.lines] if self.lines else [head, "    pass"]), f"<{label}>", "exec")
        made: dict[str, Any] = {}
        exec(code, self.namespace, made)
        function: Callable[..., Any] = next(iter(made.values()))
        return function


class Shape:
    """One struct (or message) as one version sees it."""

    def __init__(self, schema: Schema, version: int, structs: dict[str, type], flexible: bool) -> None:
        self.schema = schema
        self.version = version
        self.structs = structs
        self.flexible = flexible
        self.body = [field for field in schema.fields if field.in_body(version)]
        self.tagged = sorted(
            (field for field in schema.fields if flexible and field.tagged.has(version)), key=lambda field: field.tag
        )
        present = {field.name for field in self.body} | {field.name for field in self.tagged}
        self.absent = [field for field in schema.fields if field.name not in present]

    @classmethod
    def of(cls, schema: Schema, version: int) -> Shape:
        return cls(schema, version, schema.structs, schema.flexible.has(version))

    def inner(self, name: str) -> Shape:
        return Shape(schema_of(self.structs[name]), self.version, self.structs, self.flexible)

    def compact(self, field: Field) -> bool:
        """Whether the field's length is an unsigned varint."""
        if field.flexible is not None:
            return field.flexible.has(self.version)
        return self.flexible

    def nullable(self, field: Field) -> bool:
        return field.nullable is not NO_VERSIONS and field.nullable.has(self.version)

    def least_bytes(self) -> int:
        """The size of the smallest encoding: a count of elements that cannot fit is refused unread."""
        return sum(self._least(field) for field in self.body) + (1 if self.flexible else 0)

    def _least(self, field: Field) -> int:
        if field.kind in CODES:
            return WIDTHS[CODES[field.kind]]
        if field.kind == "struct":
            return 1 if self.nullable(field) else self.inner(field.of).least_bytes()
        if self.compact(field):
            return 1
        return 2 if field.kind == "string" else 4


def default_text(source: Source, shape: Shape, field: Field) -> str:
    """An expression for the field's default."""
    if field.default is None:
        return "None"
    if field.default is STRUCT_DEFAULT:
        return source.constant("default", shared_default(shape.structs[field.of]))
    if field.kind == "array":
        return "[]"
    if field.kind == "uuid":
        return source.constant("uuid", field.default)
    return repr(field.default)
