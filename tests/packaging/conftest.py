"""A clean copy of the source, so that building never touches the tree that others work in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCE = (
    ".*", "build", "dist", "results", "*.egg-info", "__pycache__", "*.pyc", "*.so", "*.c",
)  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The repository without anything that was built, downloaded or cached."""
    tree = tmp_path / "source"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    shutil.copytree(ROOT / ".ci", tree / ".ci")
    return tree
