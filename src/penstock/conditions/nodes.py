"""What a condition is made of. `str()` of a node is text that reads as the same node again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Field:
    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class Literal:
    value: Scalar

    def __str__(self) -> str:
        if isinstance(self.value, str):
            escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        if self.value is None or isinstance(self.value, bool):
            return {None: "null", True: "true", False: "false"}[self.value]
        return repr(self.value)


Operand: TypeAlias = Field | Literal


@dataclass(frozen=True, slots=True)
class Compare:
    left: Operand
    op: str
    """== != < <= > >="""
    right: Operand

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class In:
    left: Operand
    choices: tuple[Scalar, ...]

    def __str__(self) -> str:
        return f"{self.left} in [{', '.join(str(Literal(choice)) for choice in self.choices)}]"


@dataclass(frozen=True, slots=True)
class Matches:
    left: Operand
    pattern: str

    def __str__(self) -> str:
        return f"{self.left} matches {Literal(self.pattern)}"


@dataclass(frozen=True, slots=True)
class Contains:
    left: Operand
    text: str

    def __str__(self) -> str:
        return f"{self.left} contains {Literal(self.text)}"


@dataclass(frozen=True, slots=True)
class Exists:
    path: str

    def __str__(self) -> str:
        return f"exists {self.path}"


@dataclass(frozen=True, slots=True)
class Not:
    inner: Condition

    def __str__(self) -> str:
        return f"not ({self.inner})"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({part})" for part in self.parts)


Condition: TypeAlias = Compare | In | Matches | Contains | Exists | Not | And | Or
