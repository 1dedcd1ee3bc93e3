"""The example project passes its own tests, with nothing but the fixture."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT
from tests.patience import within


@pytest.mark.timeout(180)
def test_the_coffee_shop_passes_its_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run(
        command, cwd=ROOT / "examples" / "coffee_shop", capture_output=True, text=True, timeout=within(150)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 20
