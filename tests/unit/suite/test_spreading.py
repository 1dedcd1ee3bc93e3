"""What is shared out together, and that it is handed out so by the xdist that is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import within
from tests.spreading import ALONE, CHAINS, LONGEST, together, turn

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("one", "other", "torn"),
    [
        ("tests/spark/test_union.py::test_a", "tests/faults/spark/test_kills.py::test_b[x]", False),
        ("tests/faults/cluster/test_links.py::test_a", "tests/faults/cluster/test_shim.py::test_b", False),
        ("tests/cli/test_topic.py::test_a", "tests/cli/test_topic.py::test_b[a::b]", False),
        ("tests/cli/test_topic.py::test_a", "tests/cli/test_group.py::test_a", True),
        ("tests/docs/test_pages.py::test_a[one]", "tests/docs/test_pages.py::test_a[other]", True),
    ],
)
def test_what_shares_something_stays_together(one: str, other: str, torn: bool) -> None:
    assert (together(one) != together(other)) is torn


def test_what_takes_longest_comes_first() -> None:
    assert turn("tests/spark/test_union.py::test_a") < turn("tests/cli/test_topic.py::test_a")


def test_whatever_is_named_is_there() -> None:
    files = [name for name in LONGEST if name not in CHAINS.values()]
    assert [name for name in (*CHAINS, *ALONE, *files) if not (ROOT / name).exists()] == []


def test_no_file_is_torn_by_the_xdist_that_is_installed() -> None:
    """It was, when pytest no longer let xdist write groups into names, and nothing failed."""
    files = ["tests/unit/suite/test_patience.py", "tests/unit/declared/test_amounts.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=within(100),
    )
    ran = set(re.findall(r"^\[(gw\d)\] .* PASSED (\S+?)::", done.stdout, re.MULTILINE))
    assert sorted(file for _, file in ran) == sorted(files), done.stdout + done.stderr
    assert len({worker for worker, _ in ran}) == 2
    assert re.search(r"^gw0 ended after \d+ s, gw1 ended after \d+ s$", done.stdout, re.MULTILINE)
