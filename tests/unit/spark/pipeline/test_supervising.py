"""Drivers are started again when they die, believed when they say why they cannot run, and told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.processes import birth_of
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Home, Job, Outcome, Progress, SinkProgress, State
from penstock.spark.pipeline.listing import here
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.supervising import Supervisor, log_tail, state_of
from tests.compat.processes import wait_for
from tests.unit.spark.pipeline.files import flow_of

QUICK = Patience(first_s=0.01, most_s=0.05, tries=3, forgive_s=60)

HEAD = """
import json, os, signal, sys, time
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Home, Job, Outcome, Progress, SinkProgress
place = Home(sys.argv[1])
job = Job.out_of(sys.stdin.buffer)
print("driver", job.restarts, file=sys.stderr, flush=True)
def running():
    place.write_progress(Progress(1, home.RUNNING))
"""


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def supervise(tmp_path: Path) -> Callable[..., tuple[Supervisor, list[State]]]:
    """supervise(script): a supervisor whose drivers run that script, and the states it was seen in."""

    def make(script: str, stop_within_s: float = 5.0) -> tuple[Supervisor, list[State]]:
        path = tmp_path / "driver.py"
        path.write_text(HEAD + script)
        seen: list[State] = []

        def watch(state: State, _: Progress | None) -> None:
            if not seen or seen[-1].state != state.state:
                seen.append(state)

        job = Job("/p.toml", "b:1", "local", stop_within_s=stop_within_s)
        made = Supervisor(
            Home("orders"),
            job,
            state_of(Home("orders"), flow_of(), job),
            command=(sys.executable, str(path)),
            patience=QUICK,
            watch=watch,
        )
        return made, seen

    return make


Supervise = Callable[..., tuple[Supervisor, list[State]]]


def test_a_driver_that_ends_well_is_the_end(supervise: Supervise) -> None:
    supervisor, _ = supervise("running(); place.write_outcome(Outcome(0, state=home.FINISHED))")
    assert supervisor.supervise() == Outcome(0, state=home.FINISHED)
    found = Home("orders").state()
    assert found is not None
    assert (found.state, found.restarts, found.driver_pid) == (home.FINISHED, 0, 0)


def test_a_driver_that_is_killed_is_started_again(supervise: Supervise) -> None:
    supervisor, seen = supervise(
        "running()\n"
        "if job.restarts == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "place.write_outcome(Outcome(0, state=home.FINISHED))"
    )
    assert supervisor.supervise().code == 0
    assert home.RESTARTING in [state.state for state in seen]
    assert [line for line in log_tail(Home("orders")) if line.startswith("driver")] == ["driver 0", "driver 1"]
    found = Home("orders").state()
    assert found is not None
    assert found.restarts == 1


def test_what_a_driver_is_asked_to_do_is_in_no_file_and_no_argument(supervise: Supervise, tmp_path: Path) -> None:
    supervisor, _ = supervise(
        "running()\n"
        "shown = open('/proc/self/cmdline').read() + open('/proc/self/environ').read()\n"
        "assert job.kafka['sasl.password'] not in shown\n"
        "place.write_outcome(Outcome(0, job.kafka['sasl.password'][::-1], state=home.FINISHED))"
    )
    supervisor._job = replace(supervisor._job, kafka={"sasl.password": "quetschkommode"})
    assert supervisor.supervise().words == "edommokhcsteuq", "the driver was told"
    assert [path for path in tmp_path.rglob("*") if path.is_file() and b"quetschkommode" in path.read_bytes()] == []


def test_one_that_says_what_is_to_be_mended_is_not_started_again(supervise: Supervise) -> None:
    supervisor, _ = supervise("place.write_outcome(Outcome(3, 'topic gone', state=home.FAILED)); sys.exit(3)")
    assert supervisor.supervise() == Outcome(3, "topic gone", state=home.FAILED)
    assert log_tail(Home("orders")) == ["driver 0"]


def test_one_that_never_comes_up_is_given_up(supervise: Supervise) -> None:
    supervisor, _ = supervise("sys.exit(7)")
    outcome = supervisor.supervise()
    assert (outcome.code, outcome.state) == (1, home.FAILED)
    assert "died 3 times in a row and is given up: the driver ended with code 7" in outcome.words
    assert len(log_tail(Home("orders"))) == 3


def stopped_while(supervisor: Supervisor, ready: Callable[[], bool]) -> Outcome:
    """The outcome of a supervisor that is told to stop once something is so."""

    def stop() -> None:
        wait_for("the driver to be there", ready, timeout_s=30)
        supervisor.stop()

    teller = threading.Thread(target=stop)
    teller.start()
    try:
        return supervisor.supervise()
    finally:
        teller.join()


def runs() -> bool:
    found = Home("orders").state()
    return found is not None and found.state == home.RUNNING


def test_stopping_lets_the_driver_finish(supervise: Supervise) -> None:
    supervisor, seen = supervise(
        "def finish(*_):\n    place.write_outcome(Outcome(0, 'in peace', state=home.STOPPED)); sys.exit()\n"
        "signal.signal(signal.SIGTERM, finish); running()\nwhile True: time.sleep(1)"
    )
    assert stopped_while(supervisor, runs) == Outcome(0, "in peace", state=home.STOPPED)
    assert [state.state for state in seen][-2:] == [home.STOPPING, home.STOPPED]


def test_one_that_will_not_stop_is_killed(supervise: Supervise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.pipeline.supervising.GRACE_S", 0.1)
    supervisor, _ = supervise(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); running()\nwhile True: time.sleep(1)", stop_within_s=0.1
    )
    assert stopped_while(supervisor, runs) == Outcome(0, state=home.STOPPED)


SINKS = "place.write_progress(Progress(1, home.RUNNING, (SinkProgress('lake', 'table', 't', 'running', 'q', 3),)))"


def test_two_interrupts_end_like_one_and_sooner(tmp_path: Path) -> None:
    """As a process of its own: what is told is what the handlers of real signals make of it."""
    driver, told = tmp_path / "driver.py", tmp_path / "told"
    driver.write_text(f"{HEAD}{SINKS}\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)")
    script = (
        "import sys\nfrom pathlib import Path\nfrom penstock.spark.pipeline import supervising\n"
        "from penstock.spark.pipeline.home import Home, Job\nfrom tests.unit.spark.pipeline.files import flow_of\n"
        f"Supervisor = supervising.Supervisor\n"
        f"supervising.Supervisor = lambda *a, **k: Supervisor(*a, command=(sys.executable, {str(driver)!r}), **k)\n"
        "def watch(state, _):\n"
        f"    Path({str(told)!r}).write_text(state.state)\n"
        "found = supervising.supervise_here("
        "Home('orders'), flow_of(), Job('/p.toml', 'b:1', 'local'), console=False, watch=watch)\n"
        "sys.exit(found.code)"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", script], cwd=Path.cwd())
    try:
        wait_for("the driver to run", runs, timeout_s=30)
        for state in (home.STOPPING, home.STOPPED):
            supervisor.send_signal(signal.SIGINT)
            wait_for(f"the pipeline to be {state}", lambda state=state: told.read_text() == state, timeout_s=30)
        assert supervisor.wait(30) == 0
    finally:
        supervisor.kill()
        supervisor.wait()
    found = here()["orders"]
    assert (found.state, found.words, [sink.state for sink in found.sinks]) == (home.STOPPED, "", ["stopped"])


def test_sinks_of_a_supervisor_that_is_gone_do_not_run() -> None:
    place = Home("orders")
    job = Job("/p.toml", "b:1", "local")
    place.write_state(replace(state_of(place, flow_of(), job), state=home.RUNNING, born="another-boot/7"))
    place.write_progress(Progress(1, home.RUNNING, (SinkProgress("lake", "table", "t", "running", "q", rows_per_s=9),)))
    (sink,) = here()["orders"].sinks
    assert (sink.state, sink.rows_per_s) == ("stopped", 0.0)


def test_nothing_of_a_driver_outlives_it(supervise: Supervise, tmp_path: Path) -> None:
    left = tmp_path / "left"
    supervisor, _ = supervise(
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(left)!r}, 'w').write(str(child.pid))\n"
        "place.write_outcome(Outcome(0, state=home.FINISHED))"
    )
    supervisor.supervise()
    pid = int(left.read_text())
    try:
        wait_for("the child to go", lambda: birth_of(pid) == "", timeout_s=30)
    finally:
        if birth_of(pid):
            os.kill(pid, signal.SIGKILL)
