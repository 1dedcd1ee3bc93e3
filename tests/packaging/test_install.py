"""Penstock installs with and without a compiler, from a wheel and from source, and runs elsewhere."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.installing import NO_COMPILER, Environment, only_file, pythons, run

PYTHONS = pythons()


def test_a_wheel_built_without_a_compiler_runs_elsewhere_on_pure_kernels(source: Path, tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet")
    dist = tmp_path / "dist"
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", dist, source, cwd=tmp_path, environment=NO_COMPILER)
    wheel = only_file(dist, "*.whl")
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert "penstock/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyx", ".c", ".h"))]
    elsewhere = Environment(tmp_path / "elsewhere", with_pip=False)
    elsewhere.borrow_dependencies()
    run(*pip, "--python", elsewhere.python, "install", "--no-deps", wheel, cwd=tmp_path)
    assert elsewhere.kernels() == "pure"
    elsewhere.try_out()


def test_a_source_distribution_holds_everything_that_is_in_the_repository(source: Path, tmp_path: Path) -> None:
    build = "from setuptools.build_meta import build_sdist; import sys; build_sdist(sys.argv[1])"
    wanted = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    (tmp_path / "dist").mkdir()
    run(sys.executable, "-c", build, tmp_path / "dist", cwd=source)
    with tarfile.open(only_file(tmp_path / "dist", "*.tar.gz")) as content:
        held = {name.partition("/")[2] for name in content.getnames()}
    assert wanted - held == set()


@pytest.mark.compat
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", PYTHONS)
def test_a_wheel_from_the_source_distribution_brings_its_dependencies_and_compiled_kernels(
    source: Path, tmp_path: Path, version: str
) -> None:
    building = Environment(tmp_path / "building", with_pip=True, python=PYTHONS[version])
    run(building.python, "-m", "pip", "--quiet", "install", "build", cwd=tmp_path)
    run(building.python, "-m", "build", "--outdir", tmp_path / "dist", source, cwd=tmp_path)
    elsewhere = Environment(tmp_path / "elsewhere", with_pip=True, python=PYTHONS[version])
    wheel = only_file(tmp_path / "dist", "*.whl")
    run(elsewhere.python, "-m", "pip", "--quiet", "install", wheel, cwd=tmp_path)
    assert elsewhere.kernels() == "compiled"
    elsewhere.try_out()


@pytest.mark.compat
@pytest.mark.timeout(600)
def test_pip_install_works_where_there_is_no_compiler(source: Path, tmp_path: Path) -> None:
    elsewhere = Environment(tmp_path / "elsewhere", with_pip=True)
    # No gcc, no cc, no clang: only the environment's own programs can be found.
    bare = {"PATH": str(elsewhere.home / "bin"), "CC": "gcc"}
    assert not any((Path(folder) / "gcc").exists() for folder in bare["PATH"].split(os.pathsep))
    run(elsewhere.python, "-m", "pip", "--quiet", "install", ".", cwd=source, environment=bare)
    assert elsewhere.kernels() == "pure"
    elsewhere.try_out()
