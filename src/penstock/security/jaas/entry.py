"""The one entry of a JAAS text: `<class> <flag> [key=value]* ;`, or why there is none, in Kafka's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.security.jaas.tokens import Lexeme, lexemes

FLAGS: Final = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_END: Final = Lexeme(sign="end of the text")
_SHOWN: Final = ("username", "password", "tokenauth", "clientId", "clientSecret", "scope")


class BadJaas(PenstockError):
    """A text that is no JAAS entry, or means nothing here. Names keys and classes, never values."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A login module and its options. `flag` has no effect: there is only one module."""

    module: str
    flag: str
    options: Mapping[str, Secret] = field(default_factory=dict)


def parse_entry(text: str) -> Entry:
    """The entry of `text`. BadJaas when there is none or more than one."""
    entries = list(_entries(lexemes(text)))
    if not entries:
        raise BadJaas("Login module not specified in JAAS config")
    if len(entries) > 1:
        raise BadJaas(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    return entries[0]


def _entries(tokens: Iterator[Lexeme]) -> Iterator[Entry]:
    for first in tokens:
        second = next(tokens, _END)
        if second is _END:
            raise BadJaas("Login module control flag not specified in JAAS config")
        flag = second.text
        if flag is None:
            raise BadJaas("Login module control flag is not available in the JAAS config")
        if flag.upper() not in FLAGS:
            # The flag's place is where a password ends up when somebody forgets the flag, so it is not repeated.
            raise BadJaas("Invalid login module control flag in JAAS config: it must be " + ", ".join(FLAGS).lower())
        options = _options(tokens)
        if not first.text:
            raise BadJaas("JAAS config does not begin with the name of a login module")
        yield Entry(first.text, flag.upper(), options)


def _options(tokens: Iterator[Lexeme]) -> dict[str, Secret]:
    options: dict[str, Secret] = {}
    for token in tokens:
        if token.sign == ";":
            return options
        equals, value = next(tokens, _END), None
        if equals.sign == "=":
            value = next(tokens, _END).text
        if value is None:
            raise BadJaas(f"Value not specified for key '{_shown(token.text)}' in JAAS config")
        # A number or sign before `=` is a key without a name, which no module ever asks for.
        if token.text is not None:
            options[token.text] = Secret(value)
    raise BadJaas("JAAS config entry not terminated by semi-colon")


def _shown(key: str | None) -> str:
    """A key as it may be told: what stands in its place after a password with a blank is the rest of the password."""
    return key if key is not None and key in _SHOWN else "…"
