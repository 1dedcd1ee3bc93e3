"""From text to conditions. Pure.

condition := all ("or" all)*          all := one ("and" one)*          one := "not" one | "(" condition ")" | test
test      := "exists" field | operand ["not"] ("in" list | "matches" text | "contains" text) | operand OP operand
OP        := == != < <= > >=          operand := field | number | text | true | false | null
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from penstock.conditions.nodes import (
    And,
    Compare,
    Condition,
    Contains,
    Exists,
    Field,
    In,
    Literal,
    Matches,
    Not,
    Operand,
    Or,
    Scalar,
)

DEPTH_MAX: Final = 50
WORDS: Final = ("and", "or", "not", "in", "matches", "contains", "exists", "true", "false", "null")

_COMPARISONS: Final = ("==", "!=", "<=", ">=", "<", ">")
_MEANT: Final = {"=": "==", "&&": "and", "||": "or", "!": "not", "=~": "matches", "<>": "!=", "~": "matches"}
_ESCAPED = re.compile(r'\\(["\\])')
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<text>"(?:[^"\\]|\\.)*" | '[^']*')
      | (?P<field>`[^`]+` | [^\W\d][\w@-]*(?:\.[\w@-]+)* | @[\w@-]+(?:\.[\w@-]+)*)
      | (?P<sign>=~|==|!=|<=|>=|<>|&&|\|\||[<>=!~()\[\],])
    """,
    re.VERBOSE | re.DOTALL,
)


class ConditionBroken(ValueError):
    """A text that is no condition; `at` is where in it."""

    def __init__(self, words: str, at: int) -> None:
        super().__init__(words)
        self.words, self.at = words, at


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse(text: str) -> Condition:
    """The condition that a text means; raises ConditionBroken."""
    reader = _Reader(_tokens(text), len(text))
    condition = reader.condition(0)
    reader.end()
    return condition


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            if text[at] in "\"'`":
                raise ConditionBroken(f"this {text[at]} has no end", at)
            raise ConditionBroken(f"{text[at]!r} means nothing here", at)
        kind = found.lastgroup or ""
        if kind != "space":
            word = kind == "field" and found[0] in WORDS
            tokens.append(_Token("word" if word else kind, found[0], at))
        at = found.end()
    return tokens


class _Reader:
    """One pass over the tokens."""

    def __init__(self, tokens: list[_Token], length: int) -> None:
        self._tokens, self._next, self._length = tokens, 0, length

    def condition(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._take("word", "or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def end(self) -> None:
        token = self._peek()
        if token is not None:
            self._fail(f"{token.text!r} is too much here: join conditions by `and` or `or`")

    def _all(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._take("word", "and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self, depth: int) -> Condition:
        if depth > DEPTH_MAX:
            self._fail(f"more than {DEPTH_MAX} conditions inside each other")
        if self._take("word", "not"):
            return Not(self._one(depth + 1))
        if self._take("sign", "("):
            inner = self.condition(depth + 1)
            if not self._take("sign", ")"):
                self._fail("there must be a ) here")
            return inner
        return self._test()

    def _test(self) -> Condition:
        if self._take("word", "exists"):
            return Exists(self._field())
        left = self._operand("a field, such as status")
        negated = self._take("word", "not")
        test = self._word_test(left)
        if test is not None:
            return Not(test) if negated else test
        if negated:
            self._fail("behind `not` there must be in, matches or contains")
        for op in _COMPARISONS:
            if self._take("sign", op):
                return Compare(left, op, self._operand("a value, such as 500 or 'error'"))
        return self._fail(f"behind {left} there must be one of == != < <= > >= in matches contains")

    def _word_test(self, left: Operand) -> Condition | None:
        if self._take("word", "in"):
            return In(left, self._list())
        if self._take("word", "matches"):
            return Matches(left, self._quoted("a pattern in quotes"))
        if self._take("word", "contains"):
            return Contains(left, self._quoted("a text in quotes"))
        return None

    def _list(self) -> tuple[Scalar, ...]:
        if not self._take("sign", "["):
            self._fail("behind `in` there must be a list, such as [500, 503]")
        choices: list[Scalar] = []
        while not self._take("sign", "]"):
            if choices and not self._take("sign", ","):
                self._fail("there must be a , or a ] here")
            operand = self._operand("a value")
            if isinstance(operand, Field):
                self._next -= 1
                self._fail(f"a list holds values: put {operand} in quotes")
            choices.append(operand.value)
        return tuple(choices)

    def _field(self) -> str:
        token = self._peek()
        if token is None or token.kind != "field":
            self._fail("behind `exists` there must be a field, such as user.id")
        self._next += 1
        return _path(token.text)

    def _quoted(self, wanted: str) -> str:
        operand = self._operand(wanted)
        if isinstance(operand, Literal) and isinstance(operand.value, str):
            return operand.value
        self._next -= 1
        return self._fail(f"there must be {wanted} here")

    def _operand(self, wanted: str) -> Operand:
        token = self._peek()
        match token:
            case _Token("field", text):
                found: Operand = Field(_path(text))
            case _Token("number", text):
                found = Literal(float(text) if any(mark in text for mark in ".eE") else int(text))
            case _Token("text", text):
                found = Literal(_unquoted(text))
            case _Token("word", ("true" | "false" | "null") as text):
                found = Literal({"true": True, "false": False, "null": None}[text])
            case _:
                self._fail(f"there must be {wanted} here")
        self._next += 1
        return found

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, kind: str, text: str) -> bool:
        token = self._peek()
        if token is None or token.kind != kind or token.text != text:
            return False
        self._next += 1
        return True

    def _fail(self, words: str) -> NoReturn:
        token = self._peek()
        if token is not None and token.text in _MEANT:
            words = f"{token.text!r} is not known; did you mean {_MEANT[token.text]!r}?"
        elif token is not None and token.kind == "field" and token.text.lower() in WORDS:
            words = f"{token.text!r} is written {token.text.lower()!r}"
        raise ConditionBroken(words, self._length if token is None else token.at)


def _path(text: str) -> str:
    return text.strip("`")


def _unquoted(text: str) -> str:
    """Patterns are full of backslashes: between double quotes only `\\"` and `\\\\` are escapes, the rest stays."""
    return text[1:-1] if text[0] == "'" else _ESCAPED.sub(r"\1", text[1:-1])
