"""What a configuration property is: its name, type, default, bounds and words, and how its text is read and printed.

Text is read exactly as Kafka reads it (Java's trimming, integers, doubles and comma lists), because files and
clients that work against Kafka must work here with the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Final, NamedTuple

from penstock.model.config.validators import ListOf, Validator
from penstock.model.errors import INVALID_CONFIG, Refused
from penstock.model.secret import HIDDEN, Secret

SHORT_MAX: Final = (1 << 15) - 1
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

# Java's String.trim removes these and nothing else: a no-break space stays.
_JAVA_BLANKS: Final = "".join(map(chr, range(33)))
# Patterns stay text: `re` compiles and keeps them at first use, which most runs never reach.
_COMMA: Final = r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*"
_INTEGER: Final = r"[+-]?\d+"
_DOUBLE: Final = r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)"


class ConfigType(IntEnum):
    """The type of a value, with the code that DescribeConfigs reports."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Effect(StrEnum):
    """Whether Penstock does anything with a property."""

    ACTED = "acted"  # it changes what the node does
    ACCEPTED = "accepted"  # it is read, checked and reported, and has no meaning here
    LATER = "later"  # it belongs to a part that is not built yet


class UpdateMode(StrEnum):
    """Whether a broker property can change while the broker runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Missing(Enum):
    """Stands where a property has no default and must be given."""

    REQUIRED = "required"


REQUIRED: Final = Missing.REQUIRED


ConfigValue = bool | int | float | str | tuple[str, ...] | Secret | None


class Synonym(NamedTuple):
    """Another property that supplies a default, and what its number is multiplied with."""

    name: str
    factor: int = 1


_INTEGER_BOUNDS: Final = {ConfigType.INT: INT_MAX, ConfigType.SHORT: SHORT_MAX, ConfigType.LONG: LONG_MAX}


@dataclass(frozen=True, slots=True)
class ConfigDef:
    """One property. `doc` says in a sentence or two what it does, `effect` whether it does so here.

    `synonyms` are the broker properties that stand behind a topic or group property, the strongest first.
    An `internal` property works like any other but is reported only when it was set.
    """

    name: str
    type: ConfigType
    default: ConfigValue | Missing
    validator: Validator | None
    importance: Importance
    doc: str
    effect: Effect
    synonyms: tuple[Synonym, ...] = ()
    update_mode: UpdateMode = UpdateMode.READ_ONLY
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def default_value(self) -> ConfigValue:
        """The default as a value; None where there is none."""
        return None if isinstance(self.default, Missing) else self.default

    @property
    def default_text(self) -> str | None:
        """The default as DescribeConfigs prints it; None where there is none."""
        return value_text(self.default_value)

    @property
    def allowed(self) -> str:
        """The bounds in words, empty when any value of the type will do."""
        return self.validator.allowed if self.validator is not None else ""

    def parse(self, text: str) -> ConfigValue:
        """The value that `text` means. Refused with INVALID_CONFIG when it means none or is out of bounds."""
        try:
            value = parse_value(text, self.type)
        except ValueError as why:
            raise self._refused(text, str(why)) from None
        if isinstance(self.validator, ListOf) and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))  # Kafka drops repeated entries of checked lists
        if self.validator is not None and (problem := self.validator.problem(value)) is not None:
            raise self._refused(text, problem)
        return value

    def _refused(self, text: str, why: str) -> Refused:
        shown = HIDDEN if self.sensitive else text
        return Refused(INVALID_CONFIG, f"Invalid value {shown} for configuration {self.name}: {why}")


def by_name(*tables: Iterable[ConfigDef]) -> dict[str, ConfigDef]:
    """All rows of the tables by name. A name may stand only once."""
    found: dict[str, ConfigDef] = {}
    for table in tables:
        for row in table:
            assert row.name not in found, f"{row.name} is defined twice"
            found[row.name] = row
    return found


def parse_value(text: str, kind: ConfigType) -> ConfigValue:
    """`text` as a value of `kind`, trimmed as Java trims. ValueError says why it is none."""
    text = text.strip(_JAVA_BLANKS)
    match kind:
        case ConfigType.BOOLEAN:
            lowered = text.lower()
            if lowered not in ("true", "false"):
                raise ValueError("expected true or false")
            return lowered == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            bound = _INTEGER_BOUNDS[kind]
            if re.fullmatch(_INTEGER, text) is None or not -bound - 1 <= (number := int(text)) <= bound:
                raise ValueError(f"not a number of type {kind.name}")
            return number
        case ConfigType.DOUBLE:
            return _parse_double(text)
        case ConfigType.LIST:
            return tuple(re.split(_COMMA, text)) if text else ()
        case ConfigType.PASSWORD:
            return Secret(text)
        case _:
            return text


def _parse_double(text: str) -> float:
    if re.fullmatch(_DOUBLE, text) is None:
        raise ValueError("not a number of type DOUBLE")
    return float(text) if text.endswith(("NaN", "Infinity")) else float(text.rstrip("fFdD"))


def value_text(value: ConfigValue) -> str | None:
    """A value as DescribeConfigs prints it: `true`, `1.0E-5`, `a,b`; a secret prints as `[hidden]`."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def double_text(value: float) -> str:
    """A double as Java prints it: `0.5`, `1.0E7`, `9.9E-4`, `NaN`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # Outside that range Java writes one digit, a point, at least one more digit, and the exponent.
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
