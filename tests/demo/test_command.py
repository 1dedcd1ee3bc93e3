"""`penstock dev --demo` refuses what it cannot do with a sentence, and `dev stop` ends what it left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli import dev_demo
from penstock.cli.dev import dev
from penstock.demo.processes import KEPT_FILE, Actor, DemoFailed, end_remembered, remember
from penstock.model.errors import PenstockError
from tests.patience import within

SLEEPER = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--keep"], "--keep goes with --demo"),
        (["--seconds", "20"], "--seconds goes with --demo"),
        (["--plant", "lost"], "--plant goes with --demo"),
        (["--demo", "--nodes", "2"], "it needs 3 or more"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], words: str) -> None:
    said = CliRunner().invoke(dev, arguments)
    assert said.exit_code == 2
    assert words in said.output


def test_what_is_missing_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_demo, "EXTRA", ("rich", "no_such_spark"))
    with pytest.raises(PenstockError, match=r"^the demo needs no_such_spark: pip install 'penstock\[spark\]'$"):
        dev_demo.check_installed()


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PenstockError, match=r"Java 17 or newer.*install it"):
        dev_demo.check_installed()


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    said = CliRunner().invoke(dev, ["--demo", "--data-dir", str(tmp_path)])
    assert isinstance(said.exception, PenstockError)
    assert "is not empty" in str(said.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_actor_ends_with_everything_that_it_started(tmp_path: Path) -> None:
    child = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    actor = Actor("one", [sys.executable, "-c", f"{stubborn}{child}time.sleep(600)"], tmp_path)
    actor.start()
    group = actor.pid
    actor.end(0.2)
    assert not actor.alive
    left = subprocess.run(["ps", "-o", "stat=", "-g", str(group)], capture_output=True, text=True, check=False).stdout
    assert [state for state in left.split() if not state.startswith("Z")] == []


def test_an_actor_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    actor = Actor("agent", [sys.executable, "-c", "print('no such topic'); raise SystemExit(3)"], tmp_path)
    actor.start()
    actor.wait(within(30))
    with pytest.raises(DemoFailed, match=r"the agent ended with code 3; its log ends with:\n  no such topic"):
        actor.check()


def test_what_was_left_is_found_again_and_ended_and_nothing_else_is(tmp_path: Path) -> None:
    kept, foreign = Actor("agent", SLEEPER, tmp_path), Actor("other", SLEEPER, tmp_path)
    kept.start()
    foreign.start()
    try:
        remember(tmp_path, [kept])
        # The same process id, but of another time: somebody else's by now.
        path = tmp_path / KEPT_FILE
        stale = f'{{"name": "old", "pid": {foreign.pid}, "born": "elsewhere/1"}}'
        path.write_text(path.read_text().replace("]", f", {stale}]"))
        assert end_remembered(tmp_path, within(10)) == ["agent"]
        assert (kept.wait(within(10)), foreign.alive, path.exists()) == (True, True, False)
        assert end_remembered(tmp_path, within(10)) == []
    finally:
        kept.end(0)
        foreign.end(0)
