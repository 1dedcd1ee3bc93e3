"""What a process of tests that was killed has left is taken away, and nothing of one that lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import leftovers
from tests.patience import wait_for

ROOT = Path(__file__).parents[3]
MAKER = """
import subprocess, sys
from pathlib import Path
from tests import leftovers
leftovers.HOME = Path(sys.argv[1])
child = subprocess.Popen(["sleep", "600"])
leftovers.note_command("rm", sys.argv[2])
leftovers.note_process(child.pid)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "left"
    made.mkdir()
    return made


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path, home: Path) -> None:
    made = tmp_path / "made"
    made.touch()
    command = [sys.executable, "-c", MAKER, str(home), str(made)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        child_pid = int(maker.stdout.readline())
        leftovers.sweep(home)
        assert made.exists()
        assert leftovers._began(child_pid) != ""
        maker.kill()
        maker.wait()
    leftovers.sweep(home)
    assert not made.exists()
    assert [*home.iterdir()] == []
    wait_for("the child to end", lambda: leftovers._began(child_pid) == "", timeout_s=30)


def test_what_another_process_has_since_got_the_number_of_is_left_alone(home: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        (home / "1.0").write_text(f'{{"end": "{other.pid}.0"}}\n{{"ru')
        leftovers.sweep(home)
        assert [*home.iterdir()] == []
        assert other.poll() is None
        os.kill(other.pid, signal.SIGTERM)
