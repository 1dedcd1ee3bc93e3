"""Writes the decoder of one (message, version): a single flat function without a lookup or a call per field.

Neighbouring numbers are read by one struct, together with the length that follows them. Lengths are not checked one
by one: positions only grow, a read past the end raises by itself, and the last line catches a slice that ran over.
Counts are checked against the bytes that are left before anything is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.protocol import primitives
from penstock.protocol.schema import Field, Schema
from penstock.protocol.source import CODES, WIDTHS, Shape, Source, default_text
from penstock.protocol.wire import Malformed


def holds_records(schema: Schema) -> bool:
    """Whether any field is record data, so that decoding must keep a memoryview of the frame."""
    seen: set[str] = set()

    def search(fields: tuple[Field, ...]) -> bool:
        for field in fields:
            if field.kind == "records":
                return True
            if field.of in schema.structs and field.of not in seen:
                seen.add(field.of)
                if search(schema.structs[field.of].__schema__.fields):
                    return True
        return False

    return search(schema.fields)


def null_refused(what: str) -> Malformed:
    return Malformed(f"{what} is null")


def count_refused(what: str, count: int, left: int) -> Malformed:
    return Malformed(f"{what} claims {count} elements in {left} bytes")


class _Decoder:
    def __init__(self, schema: Schema, version: int) -> None:
        self.source = Source()
        self.views = holds_records(schema)
        self.shape = Shape.of(schema, version)
        self.run: list[tuple[str, str]] = []  # (struct code, target) of neighbouring fixed-width reads
        self.source.namespace.update(
            read_uvarint=primitives.read_uvarint,
            long_string=primitives.long_string,
            skim_tags=primitives.skim_tags,
            open_tag=primitives.open_tag,
            Malformed=Malformed,
            null_refused=null_refused,
            count_refused=count_refused,
        )

    def build(self) -> Callable[..., Any]:
        schema = self.shape.schema
        self.source.add("end = len(buf)")
        root = self._struct(self.shape)
        with self.source.block("if p > end:"):
            self.source.add("raise Malformed('the message ends inside a value')")
        self.source.add(f"return {root}, p")
        return self.source.build("decode(buf, p)", f"decode {schema.name} v{self.shape.version}")

    def _flush(self) -> None:
        if not self.run:
            return
        codes = [code for code, _ in self.run]
        targets = [target for _, target in self.run]
        width = sum(WIDTHS[code] for code in codes)
        if codes == ["B"]:
            self.source.add(f"{targets[0]} = buf[p]")
        else:
            unpack = self.source.structs("".join(codes), "unpack")
            self.source.add(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {unpack}(buf, p)")
        self.source.add(f"p += {width}")
        self.run = []

    def _struct(self, shape: Shape) -> str:
        """Read a struct into a new object; returns the name that holds it."""
        source = self.source
        target = source.fresh("o")
        self._flush()
        source.add(f"{target} = {self._maker(shape.schema.cls)}()")
        for field in (*shape.absent, *shape.tagged):
            source.add(f"{target}.{field.name} = {default_text(source, shape, field)}")
        for field in shape.body:
            self._field(shape, field, f"{target}.{field.name}")
        if shape.flexible:
            self._tags(shape, target)
        else:
            self._flush()
            source.add(f"{target}.unknown_tags = ()")
        return target

    def _maker(self, cls: type[Any]) -> str:
        """Makes an empty `cls`: the decoder sets every slot itself, which is cheaper than `__init__`."""
        name = f"new_{cls.__name__}"
        self.source.namespace.setdefault(name, partial(object.__new__, cls))
        return name

    def _tags(self, shape: Shape, target: str) -> None:
        source = self.source
        count = source.fresh("t")
        self.run.append(("B", count))
        self._flush()
        if not shape.tagged:
            with source.block(f"if {count}:"):
                source.add(f"{target}.unknown_tags, p = skim_tags(buf, p, {count}, end)")
            with source.block("else:"):
                source.add(f"{target}.unknown_tags = ()")
            return
        source.add(f"{target}.unknown_tags = ()")
        with source.block(f"if {count}:"):
            with source.block(f"if {count} > 127:"):
                source.add(f"{count}, p = read_uvarint(buf, p - 1)")
            with source.block(f"if {count} > end - p:"):
                source.add(f"raise count_refused('the tagged section', {count}, end - p)")
            tag, stop = source.fresh("tag"), source.fresh("stop")
            with source.block(f"for _ in range({count}):"):
                source.add(f"{tag}, {stop}, p = open_tag(buf, p, end)")
                word = "if"
                for field in shape.tagged:
                    with source.block(f"{word} {tag} == {field.tag}:"):
                        self._field(shape, field, f"{target}.{field.name}")
                        self._flush()
                    word = "elif"
                with source.block("else:"):
                    source.add(f"{target}.unknown_tags += (({tag}, bytes(buf[p:{stop}])),)")
                    source.add(f"p = {stop}")
                with source.block(f"if p != {stop}:"):
                    source.add(f"raise Malformed('tagged field %d of {shape.schema.name} has another size' % {tag})")

    def _field(self, shape: Shape, field: Field, target: str) -> None:
        if field.kind in CODES:
            self.run.append((CODES[field.kind], target))
            return
        what = f"{shape.schema.name}.{field.name}"
        if field.kind == "struct":
            self._nested(shape, field, target)
        elif field.kind == "array":
            self._array(shape, field, target, what)
        else:
            self._sized(field.kind, shape.compact(field), shape.nullable(field), target, what)

    def _nested(self, shape: Shape, field: Field, target: str) -> None:
        if not shape.nullable(field):
            self.source.add(f"{target} = {self._struct(shape.inner(field.of))}")
            return
        marker = self.source.fresh("n")
        self.run.append(("b", marker))
        self._flush()
        # Kafka marks the absent struct by -1, but by 0 inside a tagged field.
        absent = "<= 0" if field.tagged.has(shape.version) else "< 0"
        with self.source.block(f"if {marker} {absent}:"):
            self.source.add(f"{target} = None")
        with self.source.block("else:"):
            self.source.add(f"{target} = {self._struct(shape.inner(field.of))}")

    def _sized(self, kind: str, compact: bool, nullable: bool, target: str, what: str) -> None:
        """A string, bytes or records: a length and that many bytes."""
        source = self.source
        size = source.fresh("n")
        self.run.append(("B" if compact else "h" if kind == "string" else "i", size))
        self._flush()
        if compact:
            with source.block(f"if {size} > 127:"):
                if kind == "string":
                    source.add(f"{size}, p = long_string(buf, p - 1)")
                else:
                    source.add(f"{size}, p = read_uvarint(buf, p - 1)")
            present, stop = f"if {size}:", f"p + {size} - 1"
        else:
            present, stop = f"if {size} >= 0:", f"p + {size}"
        with source.block(present):
            source.add(f"q = {stop}")
            source.add(f"{target} = {self._slice(kind)}")
            source.add("p = q")
        with source.block("else:"):
            source.add(f"{target} = None" if nullable else f"raise null_refused({what!r})")

    def _slice(self, kind: str) -> str:
        if kind == "string":
            return "str(buf[p:q], 'utf-8')" if self.views else "buf[p:q].decode()"
        if kind == "bytes" and self.views:
            return "bytes(buf[p:q])"
        return "buf[p:q]"

    def _array(self, shape: Shape, field: Field, target: str, what: str) -> None:
        source = self.source
        compact, nullable = shape.compact(field), shape.nullable(field)
        count = source.fresh("n")
        self.run.append(("B" if compact else "i", count))
        self._flush()
        if compact:
            with source.block(f"if {count} > 127:"):
                source.add(f"{count}, p = read_uvarint(buf, p - 1)")
            present = f"if {count}:"
        else:
            present = f"if {count} >= 0:"
        if not nullable and field.of in CODES and field.of != "uuid":
            self._numbers(CODES[field.of], int(compact), count, target)
            return
        with source.block(present):
            if compact:
                source.add(f"{count} -= 1")
            self._elements(shape, field, target, count, what)
        with source.block("else:"):
            source.add(f"{target} = None" if nullable else f"raise null_refused({what!r})")

    def _numbers(self, code: str, bias: int, count: str, target: str) -> None:
        """An array of numbers, whose count prefix is `bias` above the count."""
        readers = self.source.constant("arrays", primitives.readers_of(code, bias))
        self.source.add(f"{target} = [*{readers}[{count}](buf, p)] if {count} != {bias} else []")
        start = f" - {bias * WIDTHS[code]}" if bias else ""
        self.source.add(f"p += {count} * {WIDTHS[code]}{start}")

    def _elements(self, shape: Shape, field: Field, target: str, count: str, what: str) -> None:
        source = self.source
        if field.of in CODES and field.of != "uuid":
            self._numbers(CODES[field.of], 0, count, target)
            return
        if field.of in shape.structs:
            least = shape.inner(field.of).least_bytes()
        else:
            least = 16 if field.of == "uuid" else 1 if shape.compact(field) else 2 if field.of == "string" else 4
        assert least > 0, f"{what}: an element without bytes could be claimed without limit"
        left = f"{count} * {least}" if least > 1 else count
        with source.block(f"if {left} > end - p:"):
            source.add(f"raise count_refused({what!r}, {count}, end - p)")
        if field.of == "uuid":
            cut = "bytes(buf[i:i + 16])" if self.views else "buf[i:i + 16]"
            source.add(f"q = p + {count} * 16")
            source.add(f"{target} = [{cut} for i in range(p, q, 16)]")
            source.add("p = q")
            return
        items = source.fresh("a")
        source.add(f"{items} = {target} = []")
        with source.block(f"for _ in range({count}):"):
            if field.of in shape.structs:
                element = self._struct(shape.inner(field.of))
            else:
                element = source.fresh("e")
                self._sized(field.of, shape.compact(field), False, element, what)
            source.add(f"{items}.append({element})")


def compile_decoder(schema: Schema, version: int) -> Callable[..., Any]:
    """A function (buf, position) -> (message, end). `buf` is a memoryview if `holds_records(schema)`, else bytes."""
    return _Decoder(schema, version).build()
