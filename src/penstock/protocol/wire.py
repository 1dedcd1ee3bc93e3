"""The language in which messages are declared. A message is its declaration:

    @message(key=12, kind="request", versions="0-4", flexible="4+")
    class HeartbeatRequest:
        group_id: str = string()
        generation_id: int = int32()
        group_instance_id: str | None = string(since=3, nullable=True, default=None)

The decorator makes a slotted, keyword-only dataclass; every field has a default. Messages know no version: a field
that a version lacks has its default after decoding, and may only hold its default (or be `ignorable`) when encoding.
Structs are classes directly inside the message and are named by their text (`array("Topic")`), because inside a
class body a sibling is not in scope. `codec.py` turns (message, version) into code on first use.

The field makers below are deliberately not registered as PEP 681 field specifiers: a type checker then takes each
call for a plain default value, which is what makes every constructor argument optional.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, cast, dataclass_transform

from penstock.model.errors import PenstockError
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.making import make_class
from penstock.protocol.schema import STRUCT_DEFAULT, Field, FreshDefault, Schema
from penstock.protocol.schema import schema_of as schema_of
from penstock.protocol.versions import EVERY_VERSION, NEWEST, NO_VERSIONS, Versions

T = TypeVar("T")

Buffer: TypeAlias = bytes | bytearray | memoryview


class Malformed(PenstockError):
    """A peer's bytes do not follow the protocol. The connection that sent them is closed."""


class Unencodable(PenstockError):
    """A message holds a value that the version cannot carry. Ours to fix: the peer never sees it."""


class Message(Protocol):
    """What every class has that `message` declares."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Sized(Protocol):
    """Record data that lives elsewhere (a span of a file). The encoder writes its size and passes it on unread."""

    @property
    def size(self) -> int: ...


class Spans:
    """Record data in several pieces; `encode_parts` puts each of them into the list, in order."""

    __slots__ = ("parts", "size")

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self.size = sum(len(part) if isinstance(part, (bytes, bytearray, memoryview)) else part.size for part in parts)


Records: TypeAlias = Buffer | Sized


def _ranges(given: bool | str, whole: Versions) -> Versions:
    if isinstance(given, str):
        return Versions.parse(given)
    return whole if given else NO_VERSIONS


def _field(
    kind: str,
    of: str,
    default: Any,
    *,
    since: int = 0,
    until: int = NEWEST,
    nullable: bool | str = False,
    tag: int = -1,
    tagged: str | None = None,
    flexible: str | None = None,
    ignorable: bool = False,
    secret: bool = False,
) -> Any:
    versions = Versions(since, until)
    tagged_versions = NO_VERSIONS
    if tag >= 0:
        tagged_versions = Versions.parse(tagged) if tagged is not None else versions
    return Field(
        kind,
        of,
        default,
        versions,
        _ranges(nullable, EVERY_VERSION),
        tag,
        tagged_versions,
        None if flexible is None else Versions.parse(flexible),
        ignorable,
        secret,
    )


def int8(*, default: int = 0, **said: Any) -> int:
    return cast(int, _field("int8", "", default, **said))


def int16(*, default: int = 0, **said: Any) -> int:
    return cast(int, _field("int16", "", default, **said))


def int32(*, default: int = 0, **said: Any) -> int:
    return cast(int, _field("int32", "", default, **said))


def int64(*, default: int = 0, **said: Any) -> int:
    return cast(int, _field("int64", "", default, **said))


def uint16(*, default: int = 0, **said: Any) -> int:
    return cast(int, _field("uint16", "", default, **said))


def uint32(*, default: int = 0, **said: Any) -> int:
    return cast(int, _field("uint32", "", default, **said))


def float64(*, default: float = 0.0, **said: Any) -> float:
    return cast(float, _field("float64", "", default, **said))


def boolean(*, default: bool = False, **said: Any) -> bool:
    return cast(bool, _field("boolean", "", default, **said))


def uuid(*, default: Uuid = ZERO_UUID, **said: Any) -> Uuid:
    return cast(Uuid, _field("uuid", "", default, **said))


def string(*, default: str | None = "", **said: Any) -> str:
    return cast(str, _field("string", "", default, **said))


def bytes_(*, default: bytes | None = b"", **said: Any) -> bytes:
    return cast(bytes, _field("bytes", "", default, **said))


def records_(*, default: bytes | None = None, **said: Any) -> memoryview:
    """Record batches. Decoding gives a memoryview of the frame; encoding also takes `Sized` data."""
    return cast(memoryview, _field("records", "", default, **said))


def array(of: Callable[..., Any] | str, *, default: list[Any] | None = (), **said: Any) -> list[Any]:  # type: ignore[assignment]  # () stands for a new empty list
    """`of` is another field maker (`array(int32)`) or the name of a struct (`array("Topic")`)."""
    element = of if isinstance(of, str) else of.__name__.rstrip("_")
    return cast("list[Any]", _field("array", element, default, **said))


def nested(of: str, *, default: FreshDefault | None = STRUCT_DEFAULT, **said: Any) -> Any:
    """One struct, by name. Its default is shared and read-only: assign a new struct, never a field of the default."""
    return _field("struct", of, default, **said)


PRIMITIVES: Final = frozenset(
    {
        "int8",
        "int16",
        "int32",
        "int64",
        "uint16",
        "uint32",
        "float64",
        "boolean",
        "uuid",
        "string",
        "bytes",
        "records",
    }
)


@dataclass_transform(kw_only_default=True)
def struct(*, versions: str = "0+") -> Callable[[type[T]], type[T]]:
    """Declare a struct directly inside a message. `versions` says which versions of the message use it."""

    def wrap(cls: type[T]) -> type[T]:
        schema = Schema(cls.__name__, "struct", -1, Versions.parse(versions), NO_VERSIONS, (), cls)
        return make_class(cls, schema)

    return wrap


@dataclass_transform(kw_only_default=True)
def message(*, kind: str, versions: str, flexible: str, key: int = -1) -> Callable[[type[T]], type[T]]:
    """Declare a message. `kind` is request, response, header, data, metadata, coordinator-key or coordinator-value."""

    def wrap(cls: type[T]) -> type[T]:
        structs = {name: inner for name, inner in cls.__dict__.items() if hasattr(inner, "__schema__")}
        schema = Schema(cls.__name__, kind, key, Versions.parse(versions), Versions.parse(flexible), (), cls, structs)
        for inner in structs.values():
            # A struct shares its message's versions and structs, so it can also be encoded alone.
            own = schema_of(inner)
            own.structs.update(structs)
            first = max(own.versions.first, schema.versions.first)
            own.versions = Versions(first, min(own.versions.last, schema.versions.last))
            own.flexible = schema.flexible
        return make_class(cls, schema)

    return wrap


def unknown_tags(message: object) -> tuple[tuple[int, bytes], ...]:
    """The tagged fields that came with `message` and that its declaration does not name. They are written back."""
    return cast("tuple[tuple[int, bytes], ...]", message.unknown_tags)  # type: ignore[attr-defined]  # every message has it


def set_unknown_tags(message: object, tags: tuple[tuple[int, bytes], ...]) -> None:
    message.unknown_tags = tags  # type: ignore[attr-defined]  # every message has it
