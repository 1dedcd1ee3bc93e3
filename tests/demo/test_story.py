"""The whole demo, small: three nodes, an agent, Spark, two crashes; it ends well, and nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import wait_for, within

PATIENCE_S = 280.0
DEMO = """
import sys
from penstock.cli.dev_demo import run
from penstock.demo.plan import Plan
sys.exit(run(Plan(seconds=10, lines_per_s=300, plant={plant!r}), nodes=3, data_dir=None))
"""


def begun(scratch: Path, plant: str | None = None) -> subprocess.Popen[str]:
    """Its folder lies below `scratch`, so that whatever belongs to it is known by that."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", DEMO.format(plant=plant)],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finished(demo: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said, _ = demo.communicate(timeout=within(PATIENCE_S))
    finally:
        demo.kill()
    return demo.returncode, said


def left_of(scratch: Path) -> list[str]:
    """Processes that have to do with a folder, and what is in it."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                command, place = (process / "cmdline").read_bytes().decode(), os.readlink(process / "cwd")
            except OSError:
                continue
            if str(scratch) in command or place.startswith(str(scratch)):
                found.append(command.replace("\0", " "))
    return found + [path.name for path in scratch.iterdir()]


def test_a_demo_ends_well_and_leaves_nothing(tmp_path: Path) -> None:
    code, said = finished(begun(tmp_path))
    assert code == 0, said
    for words in (
        "3 nodes are ready", "the leader of access-0", "the pipeline's driver, and Spark with it, is gone",
        "the agent is gone, a transaction open behind it", "exactly once from the file on", "records in transactions",
        "0: every line is in the table", "clean:", "add up to the table", "new leaders after", "penstock lake query",
        "2xx  █", "penstock dev --demo --keep",
    ):  # fmt: skip
        assert words in said
    assert "FAILED" not in said
    # Spark's own processes see that their parent is gone, each in its time.
    wait_for("nothing to be left", lambda: not left_of(tmp_path), timeout_s=30, pause_s=0.1)


def test_a_demo_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    demo = begun(tmp_path)
    assert demo.stdout is not None
    before = []
    for line in iter(demo.stdout.readline, ""):
        before.append(line)
        if "Spark starts" in line:
            break
    else:
        code, _ = finished(demo)
        pytest.fail(f"it ended with {code} before it began:\n{''.join(before)}")
    os.kill(demo.pid, signal.SIGINT)
    code, said = finished(demo)
    assert (code, "interrupted" in said) == (130, True), said
    wait_for("nothing to be left", lambda: not left_of(tmp_path), timeout_s=30, pause_s=0.1)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("plant", "names"),
    [
        ("lost", "lines, missing, once"),
        ("doubled", "lines, once, duplicates"),
        ("gap", "lines, missing, gaps, audit, aggregates"),
    ],
)
def test_a_fault_that_is_planted_is_found(tmp_path: Path, plant: str, names: str) -> None:
    code, said = finished(begun(tmp_path, plant))
    assert code == 1, said
    assert f"✖ FAILED: {names}\n" in said
    assert left_of(tmp_path) == []
