"""Which names an SQL text reads from, found without a parser of SQL. Pure.

Not every SQL is understood, only what tells tables from everything else: FROM, JOIN, commas between tables, names of
WITH, parentheses, quotes and comments. Names with a dot belong to a catalog and are not ours to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKENS = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?\*/ )
  | (?P<string>  '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.)*" )
  | (?P<quoted>  `(?:[^`]|``)*` )
  | (?P<word>    [^\W\d]\w* )
  | (?P<number>  \d[\w.]* )
  | (?P<mark>    \|> | [^\s\w] )
    """,
    re.VERBOSE | re.DOTALL,
)

_RELATION_FOLLOWS = {"FROM", "JOIN"}
_ENDS_RELATIONS = {
    "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY",
    "UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT", "|>",
}  # fmt: skip
_NO_RELATION = {"VALUES", "LATERAL", "UNNEST", "SELECT"}


@dataclass(frozen=True, slots=True)
class Read:
    """A name that is read from, and at which character of the text it stands."""

    name: str
    at: int


@dataclass(slots=True)
class _Group:
    """What is known inside one pair of parentheses."""

    selects: bool = False
    empty: bool = True
    in_relations: bool = False
    expects: bool = False
    after_with: bool = False
    ctes: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind != "quoted" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


def names_read(sql: str) -> list[Read]:
    """Each name once, where it is read first; names that WITH defines are left out."""
    found: dict[str, Read] = {}
    for read in _reads(_tokens(sql)):
        found.setdefault(read.name.lower(), read)
    return list(found.values())


def _tokens(sql: str) -> list[_Token]:
    return [
        _Token(match.lastgroup, match[0], match.start())
        for match in _TOKENS.finditer(sql)
        if match.lastgroup is not None and match.lastgroup != "comment"
    ]


def _reads(tokens: list[_Token]) -> Iterator[Read]:
    groups = [_Group()]
    index = 0
    while index < len(tokens):
        token, group = tokens[index], groups[-1]
        upper = token.upper
        if upper == "(":
            group.expects, group.empty = False, False
            groups.append(_Group())
        elif upper == ")" and len(groups) > 1:
            groups.pop()
        elif group.after_with and token.is_name and _defines(tokens, index):
            group.ctes.add(_plain(token).lower())
        elif upper in _RELATION_FOLLOWS and _before_relation(tokens, index, group):
            group.in_relations = group.expects = True
        elif upper == "," and group.in_relations:
            group.expects = True
        elif group.expects and token.is_name and upper not in _NO_RELATION:
            group.expects = False
            index, read = _relation(tokens, index)
            if read is not None and not any(read.name.lower() in each.ctes for each in groups):
                yield read
        elif upper in _ENDS_RELATIONS:
            group.in_relations = group.expects = False
            group.selects = group.selects or upper == "SELECT"
            group.after_with = group.after_with and upper != "SELECT"
        elif upper == "WITH":
            group.after_with = True
        else:
            group.expects = group.expects and upper == "LATERAL"
        group.empty = False
        index += 1


def _defines(tokens: list[_Token], index: int) -> bool:
    """Whether a name is that of a WITH: `name AS (` or `name (columns) AS (`."""
    before = tokens[index - 1].upper
    return before in ("WITH", ",", "RECURSIVE") and index + 1 < len(tokens) and tokens[index + 1].upper in ("AS", "(")


def _before_relation(tokens: list[_Token], index: int, group: _Group) -> bool:
    """FROM is also a word of `extract(year FROM at)` and of `a IS DISTINCT FROM b`."""
    if tokens[index].upper == "JOIN":
        return True
    if index >= 2 and tokens[index - 1].upper == "DISTINCT" and tokens[index - 2].upper in ("IS", "NOT"):
        return False
    return group.selects or group.empty or group.after_with


def _relation(tokens: list[_Token], index: int) -> tuple[int, Read | None]:
    """The relation that begins at `index`, and the index of its last token; None when it is none of ours."""
    first = tokens[index]
    dotted = False
    while index + 2 < len(tokens) and tokens[index + 1].text == "." and tokens[index + 2].is_name:
        dotted, index = True, index + 2
    called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    return index, None if dotted or called else Read(_plain(first), first.at)


def _plain(token: _Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
