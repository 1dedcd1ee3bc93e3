"""`ssl.principal.mapping.rules`: from the name in a certificate to the name of a user.

A comma list of `DEFAULT` (the name as it is) and `RULE:pattern/replacement/[L|U]`; a `/` inside the parts is escaped by
`\\`. A rule applies when its pattern matches the whole name; the first that applies decides. When none does, the
connection fails. `$1` in the replacement is the first group; a number of a group that does not exist stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.model.errors import PenstockError
from penstock.security.java_patterns import DiffersFromJava, compile_java

DEFAULT: Final = "DEFAULT"

_PART: Final = r"(?:\\.|[^\\/])*"
_RULE: Final = rf"(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?).*?|.*?"
# As Kafka cuts: a rule ends at the first comma, or at the end, after which everything before it makes a rule.
_SPLIT: Final = re.compile(rf"[ \t\n\x0b\f\r]*(?P<rule>{_RULE})[ \t\n\x0b\f\r]*(?:,[ \t\n\x0b\f\r]*|$)")
_ONE: Final = re.compile(_RULE)
_REFERENCE: Final = re.compile(r"\$([0-9]+)")
_JAVA_BLANKS: Final = "".join(map(chr, range(33)))


class BadRules(PenstockError):
    """A text that is no list of rules, or has a pattern that cannot mean the same here."""


class NoRuleApplies(PenstockError):
    """The certificate's name is nobody's: the connection fails."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` None is DEFAULT. `replacement` is texts and numbers of groups, in order."""

    pattern: re.Pattern[str] | None = None
    replacement: tuple[str | int, ...] = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self._replace_all(self.pattern, name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _replace_all(self, pattern: re.Pattern[str], name: str) -> str:
        """Every match replaced as in Java: after an empty one it goes on one character later."""
        pieces: list[str] = []
        copied = search_from = 0
        while search_from <= len(name) and (found := pattern.search(name, search_from)) is not None:
            pieces += name[copied : found.start()], self._replaced(found)
            copied = found.end()
            search_from = copied + (copied == found.start())
        return "".join(pieces) + name[copied:]

    def _replaced(self, found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in self.replacement)


class NameRules:
    """The rules of one listener. Applied once a connection."""

    def __init__(self, text: str | None = None) -> None:
        self._rules = [_rule(rule) for rule in _split(DEFAULT if text is None else text)]

    def user_of(self, name: str) -> str:
        """The user that a certificate's name means. NoRuleApplies when it means none."""
        for rule in self._rules:
            if rule is not None and (user := rule.apply(name)) is not None:
                return user
        raise NoRuleApplies(f"no rule of ssl.principal.mapping.rules applies to {name!r}")


def _split(text: str) -> list[str]:
    return [found["rule"] for found in _SPLIT.finditer(text.strip(_JAVA_BLANKS))]


def _rule(text: str) -> Rule | None:
    """The rule that `text` is; None for an empty one, which is passed over."""
    found = _ONE.match(text)
    assert found is not None, "the pattern of a rule matches nothing at least"
    if found.end() != len(text):
        raise BadRules(f"Invalid rule: `{text}`, unmatched substring: `{text[found.end() :]}`")
    if found["default"] is not None:
        return Rule()
    if found["pattern"] is None:
        return None
    try:
        pattern = compile_java(found["pattern"])
    except DiffersFromJava as differs:
        raise BadRules(str(differs)) from None
    return Rule(pattern, _replacement(found["replacement"], pattern.groups), found["case"])


def _replacement(text: str, groups: int) -> tuple[str | int, ...]:
    """The replacement taken apart: `\\x` is x, `$12` is group 12, or group 1 and a 2 when there are fewer."""
    _check_missing(text, groups)
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
            if at == len(text):
                raise BadRules(f"the replacement {text!r} ends within an escape")
            parts.append(text[at])
        elif char == "$":
            group, at = _group(text, at, groups)
            parts.append(group)
            continue
        else:
            parts.append(char)
        at += 1
    return tuple(parts)


def _check_missing(text: str, groups: int) -> None:
    """BadRules where Kafka fails every login that a rule applies to: it can keep one missing group as text, no more."""
    missing = [found for found in _REFERENCE.findall(text) if not 0 <= int(found[0]) <= groups]
    if missing and (groups == 0 or len(missing) > 1 or "\\$" in text):
        raise BadRules(f"the replacement {text!r} names groups that its pattern does not have")


def _group(text: str, at: int, groups: int) -> tuple[str | int, int]:
    """The group that is named at `at`, and where the text goes on."""
    found = _REFERENCE.match(text, at)
    if found is None:
        raise BadRules(f"the replacement {text!r} has a $ without the number of a group")
    end = at + 2
    number = int(text[at + 1])
    if number > groups:
        return text[at:end], end
    while end < found.end() and number * 10 + int(text[end]) <= groups:
        number = number * 10 + int(text[end])
        end += 1
    return number, end
