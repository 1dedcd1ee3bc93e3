"""What a declaration says, kept beside the class it made."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, cast

from penstock.protocol.versions import Versions


class FreshDefault:
    """The type of `STRUCT_DEFAULT`, which stands for a struct with all its defaults."""

    def __repr__(self) -> str:
        return "<the struct's defaults>"


STRUCT_DEFAULT: Final = FreshDefault()


@dataclasses.dataclass(slots=True)
class Field:
    """What a declaration says of one field. `of` names the element of an array, or the struct."""

    kind: str
    of: str
    default: Any
    versions: Versions
    nullable: Versions
    tag: int
    tagged: Versions
    flexible: Versions | None
    ignorable: bool
    secret: bool = False  # never printed
    name: str = ""

    def in_body(self, version: int) -> bool:
        """Whether `version` carries the field at its place, not in the tagged section."""
        return self.versions.has(version) and not self.tagged.has(version)


@dataclasses.dataclass(slots=True, eq=False)
class Schema:
    """All that was declared about one message or struct."""

    name: str
    kind: str
    key: int
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    cls: type[Any]
    structs: dict[str, type[Any]] = dataclasses.field(default_factory=dict)
    """The structs of the message, by name; for a struct, those of the message it belongs to."""
    shared_default: Any = None


def schema_of(cls: type) -> Schema:
    """The declaration of a message or struct class."""
    return cast(Schema, cls.__schema__)  # type: ignore[attr-defined]  # put there by @message
