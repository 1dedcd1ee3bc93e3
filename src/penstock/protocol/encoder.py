"""Writes the encoder of one (message, version): a single flat function that appends to a bytearray.

Neighbouring numbers are packed by one struct, together with the length that follows them when that takes one byte.
With `parts`, record data is not copied into the buffer but put between the byte pieces of a list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.protocol import primitives
from penstock.protocol.schema import STRUCT_DEFAULT, Field, Schema
from penstock.protocol.source import CODES, Shape, Source, default_text
from penstock.protocol.wire import Spans, Unencodable

# Smaller record data is cheaper to copy into the reply than to carry as a piece of its own.
COPIED_BYTES_MAX = 2048
RAW = frozenset({bytes, bytearray, memoryview})


def null_refused(what: str, version: int) -> Unencodable:
    return Unencodable(f"{what} is null, which version {version} cannot say")


def lacking(what: str, version: int, value: object) -> Unencodable:
    return Unencodable(f"{what} is {value!r}, which version {version} cannot say")


def uuid_refused(what: str, value: object) -> Unencodable:
    return Unencodable(f"{what} is {value!r}; a uuid is 16 bytes")


def _code(kind: str) -> str:
    """The struct code to write a kind with: "?" would take None for false."""
    return "B" if kind == "boolean" else CODES[kind]


class _Encoder:
    def __init__(self, schema: Schema, version: int, *, parts: bool) -> None:
        self.source = Source()
        self.parts = parts
        self.shape = Shape.of(schema, version)
        self.out = "out"
        self.run: list[tuple[str, str]] = []  # (struct code, expression) of neighbouring fixed-width writes
        self.source.namespace.update(
            uvarint=primitives.uvarint,
            string_size=primitives.string_size,
            write_tags=primitives.write_tags,
            null_refused=null_refused,
            lacking=lacking,
            uuid_refused=uuid_refused,
        )
        if parts:
            self.source.namespace.update(RAW=RAW, Spans=Spans)

    def build(self) -> Callable[..., Any]:
        schema = self.shape.schema
        if self.parts:
            self.source.add("out = bytearray()")
        self._struct(self.shape, "o")
        if self.parts:
            with self.source.block("if out:"):
                self.source.add("parts.append(bytes(out))")
        signature = "encode(o, parts)" if self.parts else "encode(o, out)"
        return self.source.build(signature, f"encode {schema.name} v{self.shape.version}")

    def _flush(self) -> None:
        if any(code[0] == "*" for code, _ in self.run):
            self._flush_arrays()
        elif self.run:
            pack = self.source.structs("".join(code for code, _ in self.run), "pack")
            self.source.add(f"{self.out} += {pack}({', '.join(value for _, value in self.run)})")
            self.run = []

    def _flush_arrays(self) -> None:
        """Pack arrays of numbers and the fixed-width values around them at once."""
        pieces, values, counts, limits = [], [], [], []
        for code, value in self.run:
            if code[0] == "*":
                number, compact, count = code[1:].split()
                pieces += ["B" if compact == "1" else "i", f"*{number}"]
                values += [f"{count} + {compact}" if compact == "1" else count, f"*{value}"]
                counts.append(count)
                if compact == "1":
                    limits.append(f"{count} < 127")
            else:
                pieces.append(code)
                values.append(value)
        writers = self.source.constant("arrays", primitives.ArrayWriters(tuple(pieces)))
        packed = f"{self.out} += {writers}[{', '.join(counts)},]({', '.join(values)})"
        if not limits:
            self.source.add(packed)
        else:
            with self.source.block(f"if {' and '.join(limits)}:"):
                self.source.add(packed)
            with self.source.block("else:"):
                self._flush_long_arrays()
        self.run = []

    def _flush_long_arrays(self) -> None:
        """The same where a count takes more than one byte."""
        run, self.run = self.run, []
        for code, value in run:
            if code[0] == "*":
                self._flush()
                number, _, count = code[1:].split()
                writers = self.source.constant("arrays", primitives.ArrayWriters((f"*{number}",)))
                self.source.add(f"{self.out} += uvarint({count} + 1)")
                self.source.add(f"{self.out} += {writers}[{count},](*{value})")
            else:
                self.run.append((code, value))
        self._flush()

    def _numbers(self, kind: str, compact: bool, held: str) -> None:
        """Put an array of numbers into the run."""
        code = _code(kind)
        count = self.source.fresh("n")
        self.source.add(f"{count} = len({held})")
        self.run.append((f"*{code} {int(compact)} {count}", held))

    def _struct(self, shape: Shape, value: str) -> None:
        source = self.source
        for field in shape.absent:
            if not field.ignorable:
                with source.block(f"if {self._said(shape, field, f'{value}.{field.name}')}:"):
                    what = f"{shape.schema.name}.{field.name}"
                    source.add(f"raise lacking({what!r}, {shape.version}, {value}.{field.name})")
        for field in shape.body:
            self._field(shape, field, f"{value}.{field.name}")
        if not shape.flexible:
            self._flush()
        elif shape.tagged:
            # Nearly every tagged field is left alone; the quick test takes a default struct by identity only.
            silent = [self._silent(shape, field, f"{value}.{field.name}") for field in shape.tagged]
            pending = list(self.run)
            with source.block(f"if {' and '.join(silent)} and not {value}.unknown_tags:"):
                self.run.append(("B", "0"))
                self._flush()
            with source.block("else:"):
                self.run = pending
                self._flush()
                self._tags(shape, value)
        else:
            # Nearly every struct ends without tags: say so, and take it back when that was wrong.
            self.run.append(("B", "0"))
            self._flush()
            with source.block(f"if {value}.unknown_tags:"):
                source.add(f"{self.out}[-1:] = write_tags({value}.unknown_tags)")

    def _said(self, shape: Shape, field: Field, value: str) -> str:
        """A condition: the field differs from its default."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is STRUCT_DEFAULT:
            default = default_text(self.source, shape, field)
            return f"{value} is not {default} and {value} != {default}"
        if field.kind == "array":
            return f"{value} is None or len({value})" if shape.nullable(field) else f"{value}"
        return f"{value} != {default_text(self.source, shape, field)}"

    def _silent(self, shape: Shape, field: Field, value: str) -> str:
        """A condition: the field surely has its default."""
        if field.default is None:
            return f"{value} is None"
        if field.default is STRUCT_DEFAULT:
            return f"{value} is {default_text(self.source, shape, field)}"
        if field.kind == "array":
            return f"({value} is not None and not {value})" if shape.nullable(field) else f"not {value}"
        return f"{value} == {default_text(self.source, shape, field)}"

    def _tags(self, shape: Shape, value: str) -> None:
        source = self.source
        tags = source.fresh("tags")
        source.add(f"{tags} = [*{value}.unknown_tags]")
        outer = self.out
        for field in shape.tagged:
            with source.block(f"if {self._said(shape, field, f'{value}.{field.name}')}:"):
                self.out = source.fresh("out")
                source.add(f"{self.out} = bytearray()")
                self._field(shape, field, f"{value}.{field.name}")
                self._flush()
                source.add(f"{tags}.append(({field.tag}, {self.out}))")
                self.out = outer
        with source.block(f"if {tags}:"):
            source.add(f"{self.out} += write_tags({tags})")
        with source.block("else:"):
            source.add(f"{self.out}.append(0)")

    def _field(self, shape: Shape, field: Field, value: str) -> None:
        what = f"{shape.schema.name}.{field.name}"
        if field.kind in CODES:
            self._fixed(field.kind, value, what)
        elif field.kind == "struct":
            self._nested(shape, field, value, what)
        elif field.kind == "array":
            self._array(shape, field, value, what)
        else:
            self._sized(field.kind, shape.compact(field), shape.nullable(field), value, what)

    def _fixed(self, kind: str, value: str, what: str) -> None:
        if kind == "uuid":
            with self.source.block(f"if len({value}) != 16:"):
                self.source.add(f"raise uuid_refused({what!r}, {value})")
        self.run.append((_code(kind), value))

    def _nested(self, shape: Shape, field: Field, value: str, what: str) -> None:
        source = self.source
        held = source.fresh("o")
        source.add(f"{held} = {value}")
        if not shape.nullable(field):
            with source.block(f"if {held} is None:"):
                source.add(f"raise null_refused({what!r}, {shape.version})")
            self._struct(shape.inner(field.of), held)
            return
        self._flush()
        with source.block(f"if {held} is None:"):
            # Kafka marks the absent struct by -1, but by 0 inside a tagged field.
            source.add(f"{self.out}.append({0 if field.tagged.has(shape.version) else 255})")
        with source.block("else:"):
            self.run.append(("B", "1"))
            self._struct(shape.inner(field.of), held)

    def _length(self, size: str, compact: bool, kind: str) -> None:
        """Write the pending run and the length in `size` (which already counts the compact form's one)."""
        source = self.source
        if not compact:
            self.run.append(("h" if kind == "string" else "i", size))
            self._flush()
            return
        pending = list(self.run)
        with source.block(f"if {size} > 127:"):
            self._flush()
            source.add(
                f"{self.out} += string_size({size} - 1)" if kind == "string" else f"{self.out} += uvarint({size})"
            )
        with source.block("else:"):
            self.run = [*pending, ("B", size)]
            self._flush()

    def _null(self, compact: bool, kind: str, nullable: bool, what: str) -> None:
        if not nullable:
            self.run = []
            self.source.add(f"raise null_refused({what!r}, {self.shape.version})")
            return
        self.run.append(("B", "0") if compact else ("h" if kind == "string" else "i", "-1"))
        self._flush()

    def _sized(self, kind: str, compact: bool, nullable: bool, value: str, what: str) -> None:
        source = self.source
        held, size = source.fresh("v"), source.fresh("n")
        source.add(f"{held} = {value}")
        pending = list(self.run)
        with source.block(f"if {held} is None:"):
            self._null(compact, kind, nullable, what)
        with source.block("else:"):
            self.run = pending
            if kind == "string":
                source.add(f"{held} = {held}.encode()")
            bias = " + 1" if compact else ""
            if kind == "records" and self.parts:
                source.add(f"raw = {held}.__class__ in RAW")
                source.add(f"{size} = (len({held}) if raw else {held}.size){bias}")
            else:
                source.add(f"{size} = len({held}){bias}")
            self._length(size, compact, kind)
            if kind == "records" and self.parts:
                self._piece(held, size)
            else:
                source.add(f"{self.out} += {held}")

    def _piece(self, held: str, size: str) -> None:
        """Record data: a small buffer is copied, everything else goes into the list as it is."""
        assert self.out == "out", "record data inside a tagged field has no size before it is read"
        source = self.source
        with source.block(f"if raw and {size} <= {COPIED_BYTES_MAX}:"):
            source.add(f"out += {held}")
        with source.block("else:"):
            source.add("parts.append(bytes(out))")
            with source.block(f"if {held}.__class__ is Spans:"):
                source.add(f"parts.extend({held}.parts)")
            with source.block("else:"):
                source.add(f"parts.append({held})")
            source.add("out = bytearray()")

    def _array(self, shape: Shape, field: Field, value: str, what: str) -> None:
        source = self.source
        compact = shape.compact(field)
        held = source.fresh("v")
        source.add(f"{held} = {value}")
        numbers = field.of in CODES and field.of != "uuid"
        if numbers and not shape.nullable(field):
            self._numbers(field.of, compact, held)
            return
        pending = list(self.run)
        with source.block(f"if {held} is None:"):
            self._null(compact, "array", shape.nullable(field), what)
        with source.block("else:"):
            self.run = pending
            if numbers:
                self._numbers(field.of, compact, held)
                self._flush()
            else:
                size = source.fresh("n")
                source.add(f"{size} = len({held}){' + 1' if compact else ''}")
                self._length(size, compact, "array")
                self._elements(shape, field, held, what)

    def _elements(self, shape: Shape, field: Field, held: str, what: str) -> None:
        source = self.source
        element = source.fresh("o" if field.of in shape.structs else "e")
        with source.block(f"for {element} in {held}:"):
            if field.of in shape.structs:
                with source.block(f"if {element}.__class__ is bytes:"):
                    source.add(f"{self.out} += {element}")  # encoded before, by codec.fragment
                    source.add("continue")
                self._struct(shape.inner(field.of), element)
            elif field.of == "uuid":
                self._fixed("uuid", element, what)
                self._flush()
            else:
                self._sized(field.of, shape.compact(field), False, element, what)


def compile_encoder(schema: Schema, version: int, *, parts: bool) -> Callable[..., Any]:
    """A function (message, bytearray) -> None, or with `parts` (message, list) -> None."""
    return _Encoder(schema, version, parts=parts).build()
