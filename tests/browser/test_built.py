"""The pages as they are committed: small enough, made of the sources beside them, and sure of their figures."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "src/penstock/console/web"
DIST = WEB / "dist"
FIRST_LOAD_BYTES = 90_000
ALL_BYTES = 120_000
LANGUAGE_BYTES = 10_000
NODE_AT_LEAST = 20


def packed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 9))


def loaded_first() -> list[Path]:
    page = (DIST / "index.html").read_text(encoding="utf-8")
    return [DIST / name for name in re.findall(r'"assets/([^"]+)"', page)]


def test_what_a_browser_loads_first_is_small() -> None:
    assert len(loaded_first()) == 3
    assert sum(map(packed, loaded_first())) <= FIRST_LOAD_BYTES


def test_all_of_it_is_small() -> None:
    assert sum(packed(path) for path in DIST.iterdir() if path.suffix in (".js", ".css", ".html")) <= ALL_BYTES
    assert all(packed(path) <= LANGUAGE_BYTES for path in DIST.glob("zh-*.js"))


def test_the_page_holds_no_script_or_style_of_its_own() -> None:
    page = (DIST / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert "<style" not in page
    assert " style=" not in page
    assert '<base href="/" />' in page


def test_nothing_stored_becomes_markup() -> None:
    sources = [*WEB.glob("src/**/*.ts"), *WEB.glob("src/**/*.tsx")]
    assert len(sources) > 40, "the sources were read"
    markup = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function"
    )
    assert [path.name for path in sources if markup.search(path.read_text(encoding="utf-8"))] == []


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []


@pytest.fixture(scope="module")
def node_modules() -> Path:
    """What `make ui` installs. Only whoever has Node can rebuild; everybody else has the committed files."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not here, so the pages cannot be built anew; they are committed as built")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < NODE_AT_LEAST:
        pytest.skip(f"Node {version.strip()} is older than {NODE_AT_LEAST}, so the pages cannot be built anew")
    modules = WEB / "node_modules"
    if not (modules / ".package-lock.json").exists():
        pytest.skip("run make ui once: the packages that the pages are built with are not here")
    return modules


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_committed_files_are_those_that_the_sources_make(node_modules: Path, tmp_path: Path) -> None:
    run("node", "build.mjs", str(tmp_path / "dist"))
    made = {path.name: path.read_bytes() for path in (tmp_path / "dist").iterdir()}
    kept = {path.name: path.read_bytes() for path in DIST.iterdir()}
    assert sorted(made) == sorted(kept), "run make ui and commit dist/"
    assert [name for name in made if made[name] != kept[name]] == [], "run make ui and commit dist/"


def test_types_hold(node_modules: Path) -> None:
    run(str(node_modules / ".bin/tsc"), "--noEmit")


def test_figures_of_the_pages(node_modules: Path, tmp_path: Path) -> None:
    """The unit tests of TypeScript's pure parts, by Node's own runner."""
    bundled = tmp_path / "figures.test.mjs"
    esbuild = node_modules / ".bin/esbuild"
    run(str(esbuild), "tests/figures.test.ts", "--bundle", "--platform=node", "--format=esm", f"--outfile={bundled}")
    run("node", "--test", str(bundled))
