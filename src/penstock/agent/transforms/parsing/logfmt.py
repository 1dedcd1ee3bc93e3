r"""logfmt: `level=info msg="said \"hi\"" took=12ms cached`. A name alone is true. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from penstock.conditions.paths import Fields

_PAIR = re.compile(r'([^\s="]++)(?:(=)("(?:[^"\\]|\\.)*+"|(?!")\S*+))?+(?=\s|$)|(\S++)', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANINGS: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse_logfmt(text: str) -> Fields | str:
    """The fields, or words about what is wrong."""
    if "=" not in text:
        return "not logfmt: there is no name=value in it"
    fields: dict[str, Any] = {}
    for name, equals, value, stray in _PAIR.findall(text):
        if stray:
            return f"not logfmt at {stray[:40]!r}"
        if not equals:
            fields[name] = True
        elif value[:1] == '"':
            inner = value[1:-1]
            fields[name] = _ESCAPE.sub(_meaning, inner) if "\\" in inner else inner
        else:
            fields[name] = value
    return fields


def _meaning(found: re.Match[str]) -> str:
    escape = found[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _MEANINGS.get(escape, escape)
