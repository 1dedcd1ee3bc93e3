"""What handlers may import of the server, imports for type checkers counted: those the import contracts leave out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import penstock.server.handlers

ROOM = Path(penstock.server.handlers.__file__).parent
MODULES = sorted(ROOM.rglob("*.py"))
KNOWN = {
    "penstock.server.doors",
    "penstock.server.internal_topics",
    "penstock.server.loops.later",
    "penstock.server.loops.slices",
}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOM)))
def test_of_the_server_a_handler_knows_its_doors(path: Path) -> None:
    imported = {node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
    of_the_server = {module for module in imported if module.startswith("penstock.server")}
    assert {module for module in of_the_server if ".handlers.shared." not in module} <= KNOWN
