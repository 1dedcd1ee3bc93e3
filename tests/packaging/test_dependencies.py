"""What a plain install imports is what a plain install brings."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.packaging.conftest import ROOT
from tests.patience import within

PACKAGE = ROOT / "src" / "penstock"
NAMED_OTHERWISE = {"re2": "google-re2"}
OF_EXTRAS = {
    "pyarrow": "arrow",
    "pyspark": "spark",
    "deltalake": "spark",
    "duckdb": "spark",
    "pyiceberg": "iceberg",
    "sqlalchemy": "iceberg",
    "fastavro": "avro",
    "obstore": "stores",
    "psycopg": "postgres",
    "starlette": "console",
    "uvicorn": "console",
    "pandas": "test",
    "pytest": "test",
    "psutil": "bench",
    "Cython": "test",
}
"""Modules that only those import who asked for an extra."""


def test_what_the_package_imports_is_a_dependency_or_of_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = {re.split(r"[<>=\[]", each)[0] for each in project["dependencies"]}
    used = {module for path in PACKAGE.rglob("*.py") for module in _imported(path)}
    foreign = {NAMED_OTHERWISE.get(name, name) for name in used - OF_EXTRAS.keys() - {"penstock", "pyspark_penstock"}}
    assert foreign - brought == set()
    assert brought - foreign == set()


def test_whoever_lacks_the_console_is_told_what_its_extra_brings() -> None:
    from penstock.cli.console import MISSING

    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["console"]
    assert re.findall(r"'([^']+)'", MISSING) == extra


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


def test_a_command_that_draws_nothing_does_not_load_what_draws() -> None:
    words = (
        "import sys; import penstock.cli.main, penstock.cli.agent, penstock.cli.cluster; print('rich' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=within(60))
    assert said.stdout == "False\n"


def test_who_asks_for_no_certificate_does_not_load_what_makes_them() -> None:
    """asyncio brings `ssl` along; `cryptography` would come on top of it."""
    words = (
        "import sys, penstock.cli.main, penstock.cli.server, penstock.server.running, penstock.client;"
        "guests = {'cryptography', 'penstock.transport.tls', 'penstock.certificates'};"
        "print(sorted(guests & sys.modules.keys()))"
    )
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=within(60))
    assert said.stdout == "[]\n"


def test_the_command_itself_starts_without_tls_at_all() -> None:
    words = "import sys, penstock.cli.main; print('ssl' in sys.modules, 'asyncio' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=within(60))
    assert said.stdout == "False False\n"
