"""The machine of exactly-once sinks decides and never acts, so that seeds can play everything that may happen to it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from penstock.spark.topic_sink import transactions

PURE = ("decided", "effects", "machine", "names", "records")
WORLDLY = {"asyncio", "os", "pathlib", "random", "socket", "threading", "time", "pyspark", "pyarrow"}


@pytest.mark.parametrize("name", PURE)
def test_it_imports_no_clock_loop_or_client(name: str) -> None:
    text = Path(transactions.__path__[0], f"{name}.py").read_text()
    imported = {
        module
        for node in ast.walk(ast.parse(text))
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported
    assert not {module.split(".")[0] for module in imported} & WORLDLY
    clients = {module for module in imported if module.startswith("penstock.client")}
    assert clients <= {"penstock.client.producer.transactions.prepared"}, "values, and nobody who sends"
