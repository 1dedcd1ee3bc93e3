"""The server says what its values are: `Any` is where a type cannot be told, and there are few such places."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from penstock import server

ROOT = Path(server.__file__).parent
ANY_MAX = 20
CROSSING: frozenset[str] = frozenset({"peers.py ask"})
"""Signatures with `Any` that other rooms call. The list may only become shorter."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def anys(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def signatures(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[str, list[ast.expr]]]:
    """Of what has a name for others: the annotations of its parameters and of what it gives."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from signatures(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            told = [node.returns, *(each.annotation for each in named if each is not None)]
            yield node.name, [each for each in told if each is not None]


def test_the_server_has_few_values_of_which_it_does_not_say_what_they_are() -> None:
    found = {name: count for name, tree in modules() if (count := anys(tree))}
    assert sum(found.values()) <= ANY_MAX, found


def test_what_others_call_says_what_it_takes_and_gives() -> None:
    untold = {
        f"{path} {name}"
        for path, tree in modules()
        for name, annotations in signatures(tree)
        if any(map(anys, annotations))
    }
    assert untold <= CROSSING


def test_an_untold_type_is_seen_wherever_it_stands() -> None:
    tree = ast.parse("def f(a: list[Any], *b: Any, **c: Any) -> Any: ...\ndef _g(a: Any): ...\nx: dict[str, Any] = {}")
    assert anys(tree) == 6
    assert [(name, sum(map(anys, told))) for name, told in signatures(tree)] == [("f", 4)]
