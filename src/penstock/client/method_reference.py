"""Every public class and method of the client as Markdown: signature and contract, read from the source.

Source and not `inspect`: what is compiled has no signatures, and annotations are wanted as they were written.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

CLIENTS: Final = {
    "Producer": "penstock.client.producer.producer",
    "Consumer": "penstock.client.consumer.consumer",
    "Admin": "penstock.client.admin.admin",
}
BLOCKING: Final = {name: f"penstock.client.blocking.{name.lower()}" for name in CLIENTS}
ANSWERING: Final = ("penstock.client.producer", "penstock.client.consumer", "penstock.client.admin")
"""The rooms whose public names, beside the clients themselves, are what calls give and take."""

PURE_TWINS: Final = {"ConsumerRecord": "penstock.kernels._pure_consumer"}
"""Classes that a compiled one stands in for."""

FOR_THE_SENDER: Final = {"add_waker", "all_placed", "move", "outcome", "place", "took"}
"""Methods of deliveries that only the producer calls."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Method(NamedTuple):
    """One entry: how it is called, and its contract."""

    name: str
    call: str
    contract: str


def method_sections() -> Iterator[str]:
    """The lines of all sections."""
    for name, module in CLIENTS.items():
        yield f"## penstock.{name}\n"
        yield from _class_lines(module, name)
    yield "## penstock.blocking\n"
    yield "`Producer`, `Consumer` and `Admin` again, for threads and scripts: the same contracts without `await`. A"
    yield "blocking `send` waits for room by itself.\n"
    for name, module in BLOCKING.items():
        yield f"### penstock.blocking.{name}\n"
        for method in methods_of(module, name):
            yield f"- `{method.call}`"
        yield ""
    yield "## What calls give and take\n"
    for module, name in answers():
        yield f"### {name}\n"
        yield from _class_lines(module, name)


def answers() -> list[tuple[str, str]]:
    """(module, name) of every public class that is no client, by name."""
    found = {}
    for room in ANSWERING:
        named = importlib.import_module(room)
        for name in named.__all__:
            if name not in CLIENTS:
                found[name] = PURE_TWINS.get(name) or getattr(named, name).__module__
    return sorted(((module, name) for name, module in found.items()), key=lambda each: each[1])


def _class_lines(module: str, name: str) -> Iterator[str]:
    yield f"{contract_of(_class(module, name))}\n"
    fields = list(fields_of(module, name))
    if fields:
        yield f"Fields: {', '.join(f'`{field}`' for field in fields)}.\n"
    for method in methods_of(module, name):
        first, *rest = method.contract.split("\n")
        yield f"- `{method.call}`  "
        yield f"  {first}"
        yield from (f"  {line}".rstrip() for line in rest)
    yield ""


def methods_of(module: str, name: str) -> list[Method]:
    """The public methods of a class, the constructor first."""
    found = [
        Method(node.name, _call(node, name), contract_of(node))
        for node in _class(module, name).body
        if isinstance(node, Function) and _is_public(node)
    ]
    return sorted(found, key=lambda method: method.name != "__init__")


def fields_of(module: str, name: str) -> Iterator[str]:
    """The public fields of a class that is data."""
    for node in _class(module, name).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            yield f"{node.target.id}: {ast.unparse(node.annotation)}"


def contract_of(node: Function | ast.ClassDef) -> str:
    return inspect.cleandoc(ast.get_docstring(node) or "")


def _is_public(node: Function) -> bool:
    if node.name == "__init__":
        return bool(ast.get_docstring(node)) or bool(node.args.kwarg)
    return not node.name.startswith("_") and node.name not in FOR_THE_SENDER


def _class(module: str, name: str) -> ast.ClassDef:
    source = inspect.getsource(importlib.import_module(module))
    return next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)


def _call(node: Function, owner: str) -> str:
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    answer = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    if marks & {"property", "cached_property"}:
        return f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name
    arguments = _arguments(node.args)
    if node.name == "__init__":
        return f"{owner}({arguments})"
    if marks & {"contextlib.asynccontextmanager", "contextlib.contextmanager"}:
        return f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}with {node.name}({arguments})"
    before = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    named = f"{owner}.{node.name}" if marks & {"classmethod", "staticmethod"} else node.name
    return f"{before}{named}({arguments}){answer}"


def _arguments(arguments: ast.arguments) -> str:
    positional = [*arguments.posonlyargs, *arguments.args]
    without_self = ast.arguments(
        posonlyargs=[],
        args=[each for each in positional if each.arg not in ("self", "cls")],
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        kwarg=arguments.kwarg,
        defaults=arguments.defaults,
    )
    return textwrap.shorten(ast.unparse(without_self), 10_000)
