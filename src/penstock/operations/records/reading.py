"""Bytes to records by a format: the parsing half of `-f`.

A text field is as long as its length says when that was read before it (`%K{big32}%k`), else it reaches to what stands
behind it in the format; the last one may reach to the end of the input. The input may end without its last newline.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.operations.records.layout import SIZES, TEXT, BadFormat, Field, Layout, Literal
from penstock.operations.records.numbers import DIGITS, STYLES, read_fixed

CHUNK_BYTES = 1 << 16
_DECODER = json.JSONDecoder()


class BadInput(ValueError):
    """The input does not follow the format; the message says which record and what was expected."""


class Stream(Protocol):
    """Binary input that gives what is there, such as `sys.stdin.buffer`."""

    def read1(self, size: int = -1, /) -> bytes: ...


@dataclass(slots=True)
class InputRecord:
    """What a producer is asked to send; None where the input says nothing."""

    topic: str | None = None
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    timestamp: int | None = None


class Input:
    """The bytes of a stream that were not taken yet."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._held, self._at, self._ended = stream, b"", 0, False

    def ended(self) -> bool:
        while self._at >= len(self._held):
            if not self._more():
                return True
        return False

    def take(self, size: int) -> bytes:
        while len(self._held) - self._at < size:
            if not self._more():
                raise BadInput(f"{size} bytes were expected, the input ends after {len(self._held) - self._at}")
        return self._cut(self._at + size)

    def until(self, delimiter: bytes) -> bytes:
        """Everything before the delimiter, which is taken too. The last newline may be missing."""
        scanned = 0
        while (found := self._held.find(delimiter, self._at + scanned)) < 0:
            held = len(self._held) - self._at
            # A delimiter may begin in this chunk and end in the next.
            scanned = max(0, held - len(delimiter) + 1)
            if not self._more():
                if delimiter in (b"\n", b"\r\n"):
                    return self._cut(len(self._held))
                raise BadInput(f"{delimiter!r} was expected, the input ends after {held} bytes")
        data = self._cut(found)
        self._at += len(delimiter)
        return data

    def rest(self) -> bytes:
        while self._more():
            pass
        return self._cut(len(self._held))

    def match(self, pattern: re.Pattern[bytes]) -> bytes:
        """What a pattern matches here; it is given more input as long as the match reaches the end of it."""
        while True:
            found = pattern.match(self._held, self._at)
            if (found is None or found.end() == len(self._held)) and self._more():
                continue
            if found is None:
                raise BadInput(f"{pattern.pattern.decode()!r} was expected, not {self._held[self._at :][:20]!r}")
            return self._cut(found.end())

    def json(self) -> bytes:
        """One JSON value, without spaces around it or inside."""
        while True:
            text = self._held[self._at :].decode("utf-8", "surrogateescape")
            skipped = len(text) - len(text.lstrip())
            try:
                value, end = _DECODER.raw_decode(text, skipped)
            except json.JSONDecodeError as wrong:
                if self._more():
                    continue
                raise BadInput(f"JSON was expected: {wrong.msg}, not {text[skipped:][:20]!r}") from None
            if end == len(text) and self._more():
                continue  # a number may go on in the next chunk
            self._cut(self._at + len(text[:end].encode("utf-8", "surrogateescape")))
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")

    def _cut(self, end: int) -> bytes:
        data = self._held[self._at : end]
        self._at = end
        return data

    def _more(self) -> bool:
        if self._ended:
            return False
        chunk = self._stream.read1(CHUNK_BYTES)
        self._ended = not chunk
        # What was taken is dropped only here, so positions hold while a record is read.
        self._held, self._at = self._held[self._at :] + chunk, 0
        return bool(chunk)


class _State:
    """One record as far as it was read, with the lengths that were announced."""

    __slots__ = ("record", "sizes")

    def __init__(self) -> None:
        self.record = InputRecord()
        self.sizes: dict[str, int] = {}


Step = Callable[[Input, _State], None]


def compile_reader(layout: Layout) -> Callable[[Stream], Iterator[InputRecord]]:
    """A function from a stream to its records. BadFormat if the format cannot be read back."""
    steps = _steps(layout)
    if not any(isinstance(part, Field) for part in layout):
        raise BadFormat("the format has no field to read into, such as %v")

    def records(stream: Stream) -> Iterator[InputRecord]:
        source, count = Input(stream), 0
        while not source.ended():
            count += 1
            state = _State()
            try:
                for step in steps:
                    step(source, state)
            except BadInput as wrong:
                raise BadInput(f"record {count}: {wrong}") from None
            except (ValueError, binascii.Error) as wrong:
                raise BadInput(f"record {count}: {wrong}") from None
            yield state.record

    return records


def _steps(layout: Layout) -> list[Step]:
    steps: list[Step] = []
    sized: set[str] = set()
    at = 0
    while at < len(layout):
        part = layout[at]
        at += 1
        if isinstance(part, Literal):
            steps.append(_literal(part.data))
        elif part.verb in SIZES:
            if part.verb.lower() in sized:
                raise BadFormat(f"{part} stands twice, or behind what it is the length of")
            sized.add(part.verb.lower())
            steps.append(_size(part))
        elif part.verb == "h":
            if "h" not in sized:
                raise BadFormat("to read headers their number has to come first, as in %H %h{%k=%v }")
            steps.append(_headers(part))
        elif part.verb in TEXT:
            following = layout[at] if at < len(layout) else None
            step, takes_literal = _text(part, part.verb in sized, following)
            sized.add(part.verb)
            at += takes_literal
            steps.append(step)
        else:
            steps.append(_number_field(part))
    return steps


def _literal(data: bytes) -> Step:
    def step(source: Input, _state: _State) -> None:
        if data == b"\n" and source.ended():
            return
        found = source.take(len(data))
        if found != data:
            raise BadInput(f"{data!r} was expected, not {found!r}")

    return step


def _size(part: Field) -> Step:
    verb = part.verb.lower()
    if part.style.isdigit():
        size = int(part.style)
        return lambda _source, state: state.sizes.__setitem__(verb, size)
    read = _number(part.style or "ascii")
    return lambda source, state: state.sizes.__setitem__(verb, read(source))


def _number(style: str) -> Callable[[Input], int]:
    if style in ("ascii", "number"):
        return lambda source: int(source.match(DIGITS))
    if style == "bool":
        return lambda source: int(source.match(re.compile(rb"true|false")) == b"true")
    if style == "hex":
        return lambda source: int(source.match(re.compile(rb"[0-9a-fA-F]+")), 16)
    width = STYLES[style]
    return lambda source: read_fixed(source.take(width), style)


def _number_field(part: Field) -> Step:
    if part.style in ("go", "strftime") or part.verb in "ai":
        raise BadFormat(f"{part}{{{part.style}}} can be printed but not read; times are read as numbers, in ms")
    read = _number(part.style or "ascii")

    def step(source: Input, state: _State) -> None:
        number = read(source)
        if part.verb == "p":
            state.record.partition = number
        elif part.verb == "d":
            state.record.timestamp = number
        # An offset and an epoch are read over: the broker gives out new ones.

    return step


def _text(part: Field, sized: bool, following: Literal | Field | None) -> tuple[Step, bool]:
    """How a text is read, and whether that takes the literal behind it too."""
    verb, decode = part.verb, _decoder(part)
    read: Callable[[Input, _State], bytes]
    takes_literal = False
    if sized:
        read = lambda source, state: source.take(_checked(state.sizes[verb]))  # noqa: E731
    elif part.style == "re":
        try:
            pattern = re.compile(part.argument.encode())
        except re.error as wrong:
            raise BadFormat(f"{part.argument!r} is no regular expression: {wrong}") from None
        read = lambda source, _state: source.match(pattern)  # noqa: E731
    elif part.style == "json":
        read = lambda source, _state: source.json()  # noqa: E731
    elif following is None:
        read = lambda source, _state: source.rest()  # noqa: E731
    elif isinstance(following, Literal):
        delimiter = following.data
        takes_literal = True
        read = lambda source, _state: source.until(delimiter)  # noqa: E731
    else:
        raise BadFormat(f"nothing says where {part} ends: put a character or its length between it and {following}")

    def step(source: Input, state: _State) -> None:
        data = decode(read(source, state))
        if verb == "t":
            state.record.topic = data.decode()
        elif verb == "k":
            state.record.key = data
        else:
            state.record.value = data

    return step, takes_literal


def _checked(size: int) -> int:
    if size < 0:
        raise BadInput(f"{size} is no length")
    return size


def _decoder(part: Field) -> Callable[[bytes], bytes]:
    match part.style:
        case "" | "re":
            return bytes
        case "hex":
            return lambda data: bytes.fromhex(data.decode())
        case "base64":
            return lambda data: base64.b64decode(data, validate=True)
        case "base64raw":
            return lambda data: base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
        case "json":
            return lambda data: json.dumps(json.loads(data), separators=(",", ":"), ensure_ascii=False).encode()
        case _:
            raise BadFormat(f"{{{part.style}}} of {part} is for printing only")


def _headers(part: Field) -> Step:
    steps = _steps(part.inner)

    def step(source: Input, state: _State) -> None:
        for _ in range(_checked(state.sizes["h"])):
            header = _State()
            for inner in steps:
                inner(source, header)
            state.record.headers.append(((header.record.key or b"").decode(), header.record.value))

    return step


def overlay(record: InputRecord, **given: object) -> InputRecord:
    """The record with what the command line says in place of what the input says."""
    return replace(record, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # by field name
