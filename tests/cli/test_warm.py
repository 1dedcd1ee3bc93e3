"""A command that is forked from the template ends as one that was started in full."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.cli import warm
from tests.cli.command import DEADLINE_S, PENSTOCK, penstock
from tests.patience import Patience, within

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("topic", "list", "-b", NOBODY), ("topic", "lst"), ("sim", "--help")],
    ids=" ".join,
)
def test_it_says_the_same_and_ends_with_the_same_code(arguments: tuple[str, ...]) -> None:
    full = subprocess.run([*PENSTOCK, *arguments], capture_output=True, text=True, timeout=within(DEADLINE_S))
    said = penstock(*arguments)
    assert (said.code, said.out, said.err) == (full.returncode, full.stdout, full.stderr)


def test_nobody_reads_what_it_says(tmp_path: Path) -> None:
    with _closed_pipe() as pipe:
        full = subprocess.run(
            [*PENSTOCK, "sim", "--help"], stdout=pipe, stderr=subprocess.PIPE, timeout=within(DEADLINE_S)
        )
        with (tmp_path / "err").open("w+b") as told, open(os.devnull) as nothing:
            streams = (nothing.fileno(), pipe.fileno(), told.fileno())
            code = warm.ask(warm._template(lakes=False), ["sim", "--help"], streams, over=Patience(DEADLINE_S).over)
            told.seek(0)
            assert (code, told.read()) == (full.returncode, full.stderr)


def _closed_pipe() -> BinaryIO:
    """Its writing end; nobody has the other."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb", buffering=0)
