"""No module imports itself through others, not even for its types alone.

`lint-imports` looks at what happens at run time and leaves imports under TYPE_CHECKING out. Modules that need each
other's types are one thing in several files: a reader cannot understand one without the other. Those that are so today
are listed here, and the list may only become shorter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import penstock

ROOT = Path(penstock.__file__).parent

KNOWN: tuple[frozenset[str], ...] = ()
"""Groups of modules each of which imports all the others of its group, directly or through them."""

Graph = Mapping[str, frozenset[str]]


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """The modules of ours that are imported anywhere in a module: at its top, for types, or within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                within = f"{node.module}.{alias.name}"
                if within in known:
                    yield within
                elif node.module in known:
                    yield node.module


def graph() -> Graph:
    known = modules()
    return {
        name: frozenset(imported(ast.parse(path.read_text(encoding="utf-8")), known)) - {name}
        for name, path in known.items()
    }


def cycles(imports: Graph) -> set[frozenset[str]]:
    """The groups of modules that import each other, by Tarjan's algorithm, with a stack of its own."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: set[frozenset[str]] = set()
    for start in sorted(imports):
        if start in index:
            continue
        work = [(start, iter(sorted(imports[start])))]
        index[start] = low[start] = len(index)
        path.append(start)
        on_path.add(start)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(sorted(imports[other]))))
                    break
                if other in on_path:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    group = frozenset(path[path.index(name) :])
                    del path[-len(group) :]
                    on_path -= group
                    if len(group) > 1:
                        found.add(group)
    return found


def test_no_module_imports_itself_through_others_but_for_those_that_are_listed() -> None:
    imports = graph()
    assert len(imports) > 1_000, "the tree was read"
    told = "\n".join(
        f"{name} -> {', '.join(sorted(imports[name] & group))}"
        for group in cycles(imports)
        if not any(group <= known for known in KNOWN)
        for name in sorted(group)
    )
    assert not told, f"modules that import each other:\n{told}"


def test_what_is_listed_is_still_so() -> None:
    found = cycles(graph())
    assert [sorted(known) for known in KNOWN if known not in found] == [], "take them off the list"


def test_cycles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f", "a"}, "f": {"g"}, "g": {"e"}}
    assert cycles({name: frozenset(others) for name, others in imports.items()}) == {
        frozenset("bc"),
        frozenset("efg"),
    }


def test_every_way_to_import_is_seen() -> None:
    source = """
from typing import TYPE_CHECKING
import penstock.a
from penstock import b
if TYPE_CHECKING:
    from penstock.c import C
def later():
    from penstock.d import d
"""
    known = dict.fromkeys(f"penstock.{name}" for name in "abcde")
    assert set(imported(ast.parse(source), known)) == {f"penstock.{name}" for name in "abcd"}
