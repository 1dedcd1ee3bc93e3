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

# Patterns begin with what they consume, not with what must not stand before it: that is how `re` finds a place to try.
_EMAIL = re.compile(r"[\w.%+-](?<![\w.%+-]{2})[\w.%+-]*+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_IPV4 = re.compile(r"\d(?<![\d.]\d)\d{0,2}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\d|\.\d)")
_IPV6 = re.compile(r"[0-9A-Fa-f:](?<![\w:.].)[0-9A-Fa-f:]{1,44}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?(?![\w:]|\.\d)")
_DIGITS = re.compile(r"\d(?<!\d\d)(?=(?:[ -]?\d){12})\d*+(?:[ -]\d++)*+")
_GROUP = re.compile(r"\d+|[ -]")
_BEARER = re.compile(r"(?i)(?:bearer|basic)\s{1,3}([\w.~+/-]{6,}={0,2})")
_NAMED_SECRET = re.compile(
    r"(?i)(?:token|secret|password|passwd|pwd|api[_-]?key|access[_-]?key)[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
    r"(?!(?:bearer|basic)\s)([^\s\"'&,;]{1,4096})"
)
_WEB_TOKEN = re.compile(r"(eyJ(?<![\w-]eyJ)[\w-]{5,}+\.[\w-]{5,}+\.[\w-]*)")
_SECRETS: Final = (
    (_BEARER, ("bearer", "basic")),
    (_NAMED_SECRET, ("token", "secret", "passw", "pwd", "key")),
    (_WEB_TOKEN, ("eyj",)),
)
"""Each with words of which one must be there: looking for those is far cheaper."""

CARD_DIGITS_MIN: Final = 13
CARD_DIGITS_MAX: Final = 19
CARD_GROUPS_MAX: Final = 5
_CARDS_BEGIN_WITH: Final = "23456"


def mask_emails(instead: Instead, text: str) -> str:
    return _EMAIL.sub(lambda found: instead(found[0]), text) if "@" in text else text


def mask_ipv4(instead: Instead, text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        return instead(found[0]) if all(int(part) <= 255 for part in found[0].split(".")) else found[0]

    return _IPV4.sub(replaced, text) if text.count(".") >= 3 else text


def mask_ipv6(instead: Instead, text: str) -> str:
    """Only what is an address: times such as 12:30:45 look like one."""

    def replaced(found: re.Match[str]) -> str:
        return instead(found[0]) if _is_ipv6(found[0]) else found[0]

    return _IPV6.sub(replaced, text) if text.count(":") >= 2 else text


def mask_cards(instead: Instead, text: str) -> str:
    """Numbers of cards, in groups or not, whose check digit is right."""
    return _DIGITS.sub(lambda found: _without_cards(instead, found[0]), text)


def mask_secrets(instead: Instead, text: str) -> str:
    """What follows Bearer, token=, password: and the like; and JSON web tokens."""
    small = text.lower()
    for pattern, words in _SECRETS:
        if any(word in small for word in words):
            text = pattern.sub(lambda found: _with_group(found, instead(found[1])), text)
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
    if not CARD_DIGITS_MIN <= len(digits) <= CARD_DIGITS_MAX or digits[0] not in _CARDS_BEGIN_WITH:
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
    if groups[begin][0] not in _CARDS_BEGIN_WITH:
        return found
    # Between groups of digits there is a blank or a dash each.
    for place in range(begin, min(begin + 2 * CARD_GROUPS_MAX, len(groups)), 2):
        digits += groups[place]
        if len(digits) > CARD_DIGITS_MAX:
            break
        if _is_card(digits):
            found = place + 1
    return found


def _with_group(found: re.Match[str], group: str) -> str:
    begin = found.start(1) - found.start()
    return f"{found[0][:begin]}{group}{found[0][begin + len(found[1]) :]}"


def _is_ipv6(text: str) -> bool:
    if ("::" not in text and text.count(":") < 6) or text == "::":
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
