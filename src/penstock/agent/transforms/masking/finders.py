"""What can be told by its looks: addresses, card numbers, secrets. Pure.

Each finder takes a text and what to say instead of a thing it finds. Its patterns take time in proportion to the text:
repetitions are bounded or possessive.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final, TypeAlias

Instead: TypeAlias = Callable[[str], str]
Finder: TypeAlias = Callable[[Instead, str], str]

_EMAIL = re.compile(r"(?<![\w.%+-])[\w.%+-]++@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"(?<![\d.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\d|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{0,32}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"
)
_DIGITS = re.compile(r"(?<!\d)\d++(?:[ -]\d++)*+")
_GROUP = re.compile(r"\d+|[ -]")
_SECRETS = (
    re.compile(r"(?i)\b(?:bearer|basic)\s{1,3}([\w.~+/-]{6,}={0,2})"),
    re.compile(
        r"(?i)(?:token|secret|password|passwd|pwd|api[_-]?key|access[_-]?key)[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
        r"(?!(?:bearer|basic)\s)([^\s\"'&,;]{1,4096})"
    ),
    re.compile(r"\b(eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*)"),
)

CARD_DIGITS_MIN: Final = 13
CARD_DIGITS_MAX: Final = 19


def mask_emails(instead: Instead, text: str) -> str:
    return _EMAIL.sub(lambda found: instead(found[0]), text) if "@" in text else text


def mask_ipv4(instead: Instead, text: str) -> str:
    return _IPV4.sub(lambda found: instead(found[0]), text) if "." in text else text


def mask_ipv6(instead: Instead, text: str) -> str:
    """Only what is an address: times such as 12:30:45 look like one."""

    def replaced(found: re.Match[str]) -> str:
        return instead(found[0]) if _is_ipv6(found[0]) else found[0]

    return _IPV6.sub(replaced, text) if ":" in text else text


def mask_cards(instead: Instead, text: str) -> str:
    """Numbers of cards, in groups or not, whose check digit is right."""
    return _DIGITS.sub(lambda found: _without_cards(instead, found[0]), text)


def mask_secrets(instead: Instead, text: str) -> str:
    """What follows Bearer, token=, password: and the like; and JSON web tokens."""
    for pattern in _SECRETS:
        text = pattern.sub(lambda found: found[0].replace(found[1], instead(found[1]), 1), text)
    return text


FINDERS: Final[dict[str, Finder]] = {
    "email": mask_emails,
    "ipv4": mask_ipv4,
    "ipv6": mask_ipv6,
    "credit_card": mask_cards,
    "token": mask_secrets,
}


def passes_luhn(digits: str) -> bool:
    """The check digit of card numbers: every second digit from the right is doubled."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_card(digits: str) -> bool:
    if not CARD_DIGITS_MIN <= len(digits) <= CARD_DIGITS_MAX or digits[0] not in "23456":
        return False
    # Milliseconds since 1970 have 13 digits too; of cards only Visa's old ones have.
    if len(digits) == 13 and digits[0] != "4":
        return False
    return passes_luhn(digits)


def _without_cards(instead: Instead, run: str) -> str:
    """A run of digits in groups; a card begins and ends where a group does."""
    if len(run) < CARD_DIGITS_MIN:
        return run
    groups = _GROUP.findall(run)
    pieces: list[str] = []
    place = 0
    while place < len(groups):
        end = _card_end(groups, place)
        if end:
            pieces.append(instead("".join(filter(str.isdigit, groups[place:end]))))
            place = end
        else:
            pieces.append(groups[place])
            place += 1
    return "".join(pieces)


def _card_end(groups: list[str], begin: int) -> int:
    """Behind which group a card that begins here ends; 0 when none does."""
    digits, found = "", 0
    for place in range(begin, len(groups)):
        if groups[place].isdigit():
            digits += groups[place]
            if len(digits) > CARD_DIGITS_MAX:
                break
            if _is_card(digits):
                found = place + 1
        elif not digits:
            break
    return found


def _is_ipv6(text: str) -> bool:
    if not any(character.isalnum() for character in text):
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
