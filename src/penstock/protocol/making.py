"""Makes the class of a declaration: slots, a constructor that takes keywords, equality, text.

The result is a dataclass to everyone who asks (`dataclasses.fields`, `replace`), but made by hand: `@dataclass`
compiles its methods at import, which costs more than a node that starts can spare. Here equality and text are shared
functions and the constructor is compiled when first called; decoding never calls it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from penstock.model.secret import HIDDEN
from penstock.protocol.schema import STRUCT_DEFAULT, Field, Schema, schema_of

T = TypeVar("T")


@dataclasses.dataclass(kw_only=True)
class _Pattern:
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


# Copied for every field, so that a field has all that this Python's dataclasses put into one.
_PATTERN = dataclasses.fields(_Pattern)[0]
_NOT_FIELDS = ("__dict__", "__weakref__")


def make_class(cls: type[T], schema: Schema) -> type[T]:
    """The slotted class for the declaration `cls`; completes `schema`."""
    namespace = {name: value for name, value in cls.__dict__.items() if name not in _NOT_FIELDS}
    fields = {}
    for name, declared in cls.__dict__.items():
        if isinstance(declared, Field):
            declared.name = name
            del namespace[name]
            fields[name] = declared
    schema.fields = tuple(fields.values())
    described = {name: _describe(schema, field, cls.__annotations__[name]) for name, field in fields.items()}
    namespace |= {
        "__qualname__": cls.__qualname__,
        "__slots__": (*fields, "unknown_tags"),
        "__dataclass_fields__": {**described, "unknown_tags": _PATTERN},
        "__schema__": schema,
        "__init__": _first_init,
        "__eq__": _equal,
        "__repr__": _text,
        "__hash__": None,
    }
    schema.cls = made = type(cls.__name__, cls.__bases__, namespace)
    return cast("type[T]", made)


def _describe(schema: Schema, field: Field, annotation: Any) -> Any:
    described = copy.copy(_PATTERN)
    described.name, described.type = field.name, annotation
    if field.kind == "array" and field.default is not None:
        described.default, described.default_factory = dataclasses.MISSING, list
    elif field.default is STRUCT_DEFAULT:
        described.default, described.default_factory = dataclasses.MISSING, _SharedDefault(schema, field.of)
    else:
        described.default = field.default
    return described


class _SharedDefault:
    """A default factory that answers with the struct's shared, read-only default."""

    __slots__ = ("of", "schema")

    def __init__(self, schema: Schema, of: str) -> None:
        self.schema, self.of = schema, of

    def __call__(self) -> Any:
        # The struct may be declared after the field, so it is looked up when a message is made.
        return shared_default(self.schema.structs[self.of])


def _first_init(self: Any, **values: Any) -> None:
    """Stands for the constructor until it is first called."""
    schema = self.__schema__
    schema.cls.__init__ = _compile_init(schema)
    schema.cls.__init__(self, **values)


def _compile_init(schema: Schema) -> Callable[..., None]:
    defaults: dict[str, Any] = {"unknown_tags": ()}
    body = ["self.unknown_tags = unknown_tags"]
    for field in schema.fields:
        name = field.name
        if field.kind == "array" and field.default is not None:
            defaults[name] = STRUCT_DEFAULT  # no value of an array, so it can say that none was given
            body.append(f"self.{name} = {name} if {name} is not given else []")
        else:
            is_struct = field.default is STRUCT_DEFAULT
            defaults[name] = shared_default(schema.structs[field.of]) if is_struct else field.default
            body.append(f"self.{name} = {name}")
    arguments = ", ".join(f"{name}=defaults[{name!r}]" for name in defaults)
    lines = [f"def __init__(self, *, {arguments}):", *body]
    made: dict[str, Any] = {}
    scope = {"defaults": defaults, "given": STRUCT_DEFAULT}
    exec(compile("\n    ".join(lines), f"<{schema.name}>", "exec"), scope, made)
    return cast("Callable[..., None]", made["__init__"])


def _equal(self: Any, other: object) -> Any:
    if getattr(other, "__schema__", None) is not self.__schema__:
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.__dataclass_fields__)


def _text(self: Any) -> str:
    """Only what differs from the default: a message in a log line should say what it says, but no secret."""
    hidden = {field.name for field in self.__schema__.fields if field.secret}
    said = [
        f"{name}={HIDDEN if name in hidden else repr(getattr(self, name))}"
        for name, field in self.__dataclass_fields__.items()
        if getattr(self, name)
        != (field.default if field.default is not dataclasses.MISSING else field.default_factory())
    ]
    return f"{self.__schema__.cls.__qualname__}({', '.join(said)})"


class _FixedList(list[Any]):
    """The empty array of a shared default."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise AttributeError("this array belongs to the shared default of a field: assign a new struct instead")

    append = extend = insert = __iadd__ = __setitem__ = _refuse


def _read_only(self: Any, name: str, _value: object) -> None:
    raise AttributeError(
        f"this {self.__schema__.name} is the shared default of its field: assign a new {self.__schema__.name}"
        f" instead of setting {name}"
    )


def shared_default(cls: type[Any]) -> Any:
    """The one instance that stands for `cls` with all defaults.

    Responses have up to three such structs per partition and nearly always leave them alone; sharing one saves making
    them, and the encoder knows it by identity. It refuses assignment, so sharing cannot be observed.
    """
    schema = schema_of(cls)
    if schema.shared_default is None:
        frozen = type(
            cls.__name__,
            (cls,),
            {
                "__slots__": (),
                "__qualname__": cls.__qualname__,
                "__module__": cls.__module__,
                # dataclasses.replace, copy and pickle make an ordinary struct of it.
                "__new__": lambda _cls, **values: cls(**values),
                "__reduce__": lambda _self: (cls, ()),
            },
        )
        instance: Any = object.__new__(frozen)
        cls.__init__(instance)
        for name in cls.__slots__:
            if isinstance(getattr(instance, name), list):
                setattr(instance, name, _FixedList())
        # The class was made here for nothing but to refuse this.
        frozen.__setattr__ = _read_only  # type: ignore[assignment,method-assign]
        schema.shared_default = instance
    return schema.shared_default
