"""Kafka's own classes asked about the texts of security, and ours asked the same.

Each test draws its cases from a seed; `PENSTOCK_SEED` draws others, `PENSTOCK_CASES` another number of them.
"""

from __future__ import annotations

import base64
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from penstock.security.der import name_of
from penstock.security.jaas.entry import BadJaas, parse_entry
from penstock.security.name_rules import BadRules, NameRules, NoRuleApplies
from penstock.security.names import rfc2253
from tests.compat.oracles.jvm import answers

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1_200)]

CASES = int(os.environ.get("PENSTOCK_CASES", "100000"))
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))

Draw = random.Random
Told = dict[str, Any]


def compare(
    source: str, cases: list[Told], ours: Callable[[Told], Told], refusal: Callable[[Told], Told] = lambda said: said
) -> None:
    """Fails with the first cases that Kafka and we see differently. `refusal` reduces an error of Kafka to its kind."""
    differing = []
    for case, theirs in zip(cases, answers(source, cases), strict=True):
        said = ours(case)
        if "error" in theirs:
            theirs = refusal(theirs)
        if said != theirs:
            differing.append(f"{case!r}\n    Kafka: {theirs!r}\n    ours:  {said!r}")
    assert not differing, f"{len(differing)} of {len(cases)} differ\n" + "\n".join(differing[:10])


# JAAS

_JAAS_WORDS = [
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "a.B",
    "x",
    "Ünï",
    "$a-b_c",
    "a1.2-3",
    "\u00a0",
]
_JAAS_FLAGS = ["required", "REQUISITE", "Sufficient", "optional", "REQU\u0131RED", "needed", "'required'", "5"]
_JAAS_KEYS = ["username", "user_a-b", "'q u'", '"k"', "5", "-", "k-1", "-1", "_", "k.x", "/x", "é"]
_JAAS_VALUES = [
    '"secret"',
    "'it''s'",
    '"a\\"b"',
    '"\\n\\t\\061\\0\\7771\\38\\a\\v\\q"',
    "true",
    "5",
    "-1",
    "1a",
    "a.b/c",
    "'open",
    '"é\u2028"',
    '"two\nlines"',
    "a\\b",
    "''",
    '""',
    ".5",
    "-x",
    "x-",
    "\x7f",
    "\x85",
    "\U0001f600",
    '"\\',
]
_JAAS_BLANKS = [
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\0",
    "/* c */",
    "/* *\n/ */",
    "// c\n",
    "/ c\n",
    "/**/",
    "/*\n/*/",
]


def _jaas_text(draw: Draw) -> str:
    blank = lambda: draw.choice(_JAAS_BLANKS) if draw.random() < 0.2 else " "  # noqa: E731
    pieces = []
    for _ in range(draw.choices((0, 1, 2), (1, 30, 2))[0]):
        pieces += [draw.choice(_JAAS_WORDS), blank(), draw.choice(_JAAS_FLAGS) if draw.random() < 0.3 else "required"]
        for _ in range(draw.randrange(4)):
            near = [blank() if draw.random() < 0.2 else "" for _ in range(2)]
            pieces += [blank(), draw.choice(_JAAS_KEYS), near[0], "=", near[1], draw.choice(_JAAS_VALUES)]
        pieces += [blank() if draw.random() < 0.3 else "", ";" if draw.random() < 0.95 else ""]
    return _mutated(draw, "".join(pieces), "=;/*'\"\\ \n\r-.5a_\u00a0\u0085é\x7f0127")


def _mutated(draw: Draw, text: str, alphabet: str) -> str:
    """The text, in half of the cases with a few characters taken out, put in or doubled."""
    characters = list(text)
    for _ in range(draw.choice((0, 0, 1, 3))):
        at = draw.randrange(len(characters) + 1)
        match draw.randrange(3):
            case 0:
                del characters[at : at + draw.randint(1, 3)]
            case 1:
                characters.insert(at, draw.choice(alphabet))
            case _:
                characters[at:at] = characters[at : at + draw.randint(1, 8)]
    return "".join(characters)


def _our_jaas(case: dict[str, Any]) -> dict[str, Any]:
    try:
        entry = parse_entry(case["text"])
    except BadJaas as bad:
        return {"error": _without_keys(str(bad))}
    options = {key: value.reveal() for key, value in entry.options.items()}
    return {"module": entry.module, "flag": f"LoginModuleControlFlag: {entry.flag.lower()}", "options": options}


def _without_keys(error: str) -> str:
    """Keys and flags may be pieces of a password, so ours are not repeated. Of a nameless module Java says nothing."""
    if error in ("null", "JAAS config does not begin with the name of a login module"):
        return "no module"
    for kind in ("Value not specified", "Invalid login module control flag"):
        if error.startswith(kind):
            return kind
    return error


def test_jaas_texts_mean_what_they_mean_to_kafka() -> None:
    draw = Draw(SEED)
    cases = [{"text": _jaas_text(draw)} for _ in range(CASES)]
    compare("JaasTexts.java", cases, _our_jaas, lambda said: said | {"error": _without_keys(said["error"])})


# Names of certificates

_OIDS = ["2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11", "0.9.2342.19200300.100.1.1"]
_OIDS += [
    "0.9.2342.19200300.100.1.25",
    "1.2.840.113549.1.9.1",
    "2.5.4.5",
    "2.5.4.12",
    "2.5.4.97",
    "2.999.1",
    "1.3.6.1.4.1.1",
]
_NAME_CHARACTERS = "abcXYZ019 ,=+<>#;\"\\'/()-.:?*@_&!~\t\r\n\0\x7fäß€İıΣς\u00a0\u2028\ufeff😀"


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = (
        bytes([size])
        if size < 128
        else bytes([0x80 | (size.bit_length() + 7) // 8]) + size.to_bytes((size.bit_length() + 7) // 8, "big")
    )
    return bytes([tag]) + length + content


def _oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    found = b""
    for number in (first * 40 + second, *rest):
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        found += bytes(reversed(groups))
    return _der(0x06, found)


def _attribute(draw: Draw) -> bytes:
    text = "".join(draw.choices(_NAME_CHARACTERS, k=draw.choice((0, 1, 2, 5, 12, 40))))
    tag = draw.choice((0x0C, 0x0C, 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E, 0x04, 0x02))
    content = text.encode("utf-16-be") if tag == 0x1E else text.encode("utf-32-be") if tag == 0x1C else text.encode()
    if tag in (0x13, 0x14, 0x16, 0x1B):
        content = text.encode("ascii", "ignore")
    if draw.random() < 0.02:
        content += draw.randbytes(2)
    return _der(0x30, _oid(draw.choice(_OIDS)) + _der(tag, content))


def _name(draw: Draw) -> bytes:
    parts = [
        _der(0x31, b"".join(_attribute(draw) for _ in range(draw.choice((1, 1, 1, 2, 3)))))
        for _ in range(draw.randrange(5))
    ]
    return b"".join(parts)


def test_names_of_certificates_are_printed_as_java_prints_them() -> None:
    draw = Draw(SEED)
    names = [_name(draw) for _ in range(CASES)]
    cases = [{"der": base64.b64encode(_der(0x30, name)).decode()} for name in names]
    refused = 0
    differing = []
    for name, theirs in zip(names, answers("CertificateNames.java", cases), strict=True):
        if "error" in theirs:
            refused += 1  # a name that Java refuses never gets to a principal
            rfc2253(name_of(name))
        elif (ours := rfc2253(name_of(name))) != theirs["name"]:
            differing.append(f"{name.hex()}\n    Kafka: {theirs['name']!r}\n    ours:  {ours!r}")
    assert not differing, f"{len(differing)} of {CASES} differ\n" + "\n".join(differing[:10])
    assert refused < CASES // 10


# Mapping rules

_DNS = [
    "CN=Bob,OU=x,O=y",
    "CN=x,O=y",
    "CN=kafka1.example.com,OU=Ops+CN=a,O=Ex\\,ample,C=DE",
    "1.2.840.113549.1.9.1=#1605,CN=duke,OU=ServiceUsers,O=Org,C=US",
    "CN=Ünï\u2028x,O=İß",
    "CN=a\nb",
    "CN=a\r",
    "",
    "CN=$1\\\\x,OU=/a",
    "DEFAULT",
]
_PATTERN_PIECES = [
    "^",
    "$",
    "CN=",
    "CN=(.*?)",
    "([^,]+)",
    ",OU=",
    "(.*)",
    ".*",
    ".+",
    "O=([a-z]*)",
    "(?:x|y)",
    "(a|(b))",
    "[a-zA-Z.]*",
    "\\d+",
    "\\w",
    "\\s?",
    "(\\w+)",
    "[^,=]{1,5}",
    "(?<n>x)",
    "\\\\",
    "\\.",
    "\\$",
    "\\/",
    ",",
    "x{0,2}",
    "a{2}",
    "(?=C)",
    "(?!D)",
    "(?<=x)",
    "[\\w\\-.]+",
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "*",
    "?",
    "+",
    "\\b",
    "\\p{L}",
    "(?i)",
    "\\Q",
    "\\1",
    "[a&&b]",
    "é",
    " ",
    "#",
    "-",
    "&",
    "~",
    "/",
    "(x)?",
    "[\\n]",
    "\\x41",
    "\\u0042",
    "[^\\/]*",
    "(C)(N)",
]
_REPLACEMENTS = [
    "$1",
    "$1@$2",
    "$1@$4",
    "$12",
    "$0",
    "u-$1",
    "",
    "x",
    "\\$1",
    "\\\\",
    "$",
    "${n}",
    "a\\/b",
    "\\",
    "$10",
    "$01",
    "$3$4x",
    "é$1",
    "$1,$2",
    "$9$9",
    "\\$9$9",
]


def _rule(draw: Draw) -> str:
    if draw.random() < 0.15:
        return draw.choice(("DEFAULT", "DEFAULT", "default", "BAD", "", "DEFAULTX", "RULE:", "RULE:a", "RULE:a/b"))
    if draw.random() < 0.4:
        pattern = draw.choice(
            (
                "^CN=([^,]+),OU=.*$",
                "^CN=(.*?)$",
                "^CN=(.*?),OU=(.*?),O=(.*?)$",
                ".*",
                "(.*)",
                "CN=(\\w+).*",
                "^.*CN=([a-zA-Z0-9.]*).*$",
                "",
            )
        )
    else:
        pattern = "".join(draw.choices(_PATTERN_PIECES, k=draw.randint(1, 5)))
    return f"RULE:{pattern}/{draw.choice(_REPLACEMENTS)}/{draw.choice(('', '', 'L', 'U', 'X', 'LU', 'L x'))}"


def _rules(draw: Draw) -> str:
    text = draw.choice((",", ", ", " , ", ",\n")).join(_rule(draw) for _ in range(draw.choice((1, 1, 2, 3))))
    return _mutated(draw, text, "RULE:/,$\\L1 ") if draw.random() < 0.3 else text


def test_mapping_rules_give_the_names_that_kafka_gives() -> None:
    """What we refuse at start, because it may mean something else in Java, is counted and must stay a minority."""
    draw = Draw(SEED)
    cases = [{"rules": _rules(draw), "name": draw.choice(_DNS)} for _ in range(CASES)]
    refused, differing = 0, []
    for case, theirs in zip(cases, answers("CertificateNames.java", cases), strict=True):
        try:
            rules = NameRules(case["rules"])
        except BadRules:
            refused += "error" not in theirs
            continue
        try:
            ours = rules.user_of(case["name"])
        except NoRuleApplies:
            ours = None
        if ours != theirs.get("name"):
            differing.append(f"{case!r}\n    Kafka: {theirs!r}\n    ours:  {ours!r}")
    assert not differing, f"{len(differing)} of {CASES} differ\n" + "\n".join(differing[:10])
    assert refused < CASES // 5, f"{refused} of {CASES} refused although Kafka takes them"
