"""The process that keeps a pipeline's driver alive: `penstock pipeline run`, or its twin in the background.

A driver that dies is started again, after a wait that grows; one that says why it cannot run is believed. Standalone
Spark takes no Python driver into the cluster, so a machine of the user's supervises it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, Final

from penstock.processes import birth_of
from penstock.spark.pipeline import home
from penstock.spark.pipeline.admin_port import AdminPort
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.home import Home, Job, Outcome, Progress, State
from penstock.spark.pipeline.retrying import DRIVERS, Patience, Tries
from penstock.spark.pipeline.wiring import DEFAULT_BOOTSTRAP

# -P keeps whatever lies in the current directory from being taken for a module of ours.
DRIVER: Final = (sys.executable, "-P", "-m", "penstock.spark.pipeline.driver")
BACKGROUND: Final = (sys.executable, "-P", "-m", "penstock.spark.pipeline.supervising")

LOOK_EVERY_S: Final = 0.1
GRACE_S: Final = 20.0
"""Beyond the time a driver has to finish its batches: for Spark to go."""
LOG_BYTES_MAX: Final = 16 << 20
LOG_TAIL_LINES: Final = 20

_log = logging.getLogger("penstock.spark.pipeline")

Watch = Callable[[State, Progress | None], None]


def state_of(place: Home, flow: Flow, job: Job) -> State:
    """How a run begins."""
    return State(
        name=place.name,
        state=home.STARTING,
        pid=os.getpid(),
        born=birth_of(os.getpid()),
        host=socket.gethostname(),
        file=str(flow.path),
        digest=flow.digest,
        master=job.master,
        bootstrap=job.bootstrap or DEFAULT_BOOTSTRAP,
        warehouse=flow.warehouse,
        started_ms=_now_ms(),
        since_ms=_now_ms(),
    )


class Supervisor:
    """One run of one pipeline, from its first driver to its last. Call `supervise` within `home.locked()`."""

    def __init__(
        self,
        place: Home,
        job: Job,
        state: State,
        *,
        command: Sequence[str] = DRIVER,
        patience: Patience = DRIVERS,
        console: bool = True,
        watch: Watch = lambda *_: None,
    ) -> None:
        """`console` lets the driver's standard output through: rows of console sinks. `watch` sees every change."""
        self._place, self._job, self._state = place, job, state
        self._command, self._patience, self._console, self._watch = command, patience, console, watch
        self._wanted, self._in_a_hurry = True, False
        self._asked_s: float | None = None

    def stop(self) -> None:
        """From a signal handler: the driver is told at the next look, and killed when it takes too long.

        Whoever asks twice does not want to wait for batches: what they leave undone is done by the next run.
        """
        self._wanted, self._in_a_hurry = False, not self._wanted

    def supervise(self) -> Outcome:
        """Runs drivers until one ends for good or stop was called; what is written of it is the truth at any moment."""
        tries = Tries()
        try:
            while True:
                tries = tries.started(time.monotonic())
                outcome = self._drive()
                if outcome.final or not self._wanted:
                    return self._ended(outcome)
                tries, wait_s = tries.after_failure(time.monotonic(), self._patience)
                if wait_s is None:
                    often = f"{tries.failed} times in a row " if tries.failed > 1 else ""
                    words = f"the driver died {often}and is given up: {outcome.words}"
                    return self._ended(replace(outcome, words=words, state=home.FAILED))
                self._become(home.RESTARTING, restarts=self._state.restarts + 1, driver_pid=0, words=outcome.words)
                if not self._waited(wait_s):
                    return self._ended(Outcome(0, state=home.STOPPED))
                self._job = replace(self._job, restarts=self._state.restarts)
        except BaseException:
            self._become(home.FAILED, words="the supervisor was interrupted", code=1, ended_ms=_now_ms())
            raise

    def _drive(self) -> Outcome:
        """One driver, from start to end."""
        self._place.forget_run()
        with _opened_log(self._place) as log:
            driver = subprocess.Popen(
                [*self._command, self._place.name],
                stdin=subprocess.PIPE,
                stdout=None if self._console else log,
                stderr=log,
                # Ctrl-C of the terminal is for us: the driver is told to finish, its JVM is told nothing.
                start_new_session=True,
            )
        try:
            assert driver.stdin is not None, "it was given a pipe"
            self._job.put_into(driver.stdin)
            self._become(home.STARTING, driver_pid=driver.pid)
            self._accompany(driver)
        finally:
            _kill_group(driver)
        found = self._place.outcome()
        return found if found is not None else self._silent_end(driver)

    def _accompany(self, driver: subprocess.Popen[bytes]) -> None:
        """Until it ends. What it writes of its progress makes it `running`."""
        while driver.poll() is None:
            progress = self._place.progress()
            if self._wanted:
                if self._state.state == home.STARTING and progress is not None and progress.state != home.STARTING:
                    self._become(home.RUNNING)
            else:
                self._ask_to_end(driver)
            self._watch(self._state, progress)
            time.sleep(LOOK_EVERY_S)
        self._watch(self._state, self._place.progress())

    def _ask_to_end(self, driver: subprocess.Popen[bytes]) -> None:
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._become(home.STOPPING)
            driver.terminate()
        elif self._in_a_hurry:
            driver.kill()
        elif time.monotonic() - self._asked_s > self._job.stop_within_s + GRACE_S:
            _log.warning("the driver did not stop within %g s and is killed", self._job.stop_within_s + GRACE_S)
            driver.kill()

    def _silent_end(self, driver: subprocess.Popen[bytes]) -> Outcome:
        code = driver.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if not self._wanted:
            return Outcome(0, state=home.STOPPED)
        return Outcome(1, f"the driver {how}; {self._place.log} says more", final=False, state=home.FAILED)

    def _waited(self, wait_s: float) -> bool:
        """Whether it is still wanted after that time."""
        deadline_s = time.monotonic() + wait_s
        while self._wanted and time.monotonic() < deadline_s:
            self._watch(self._state, None)
            time.sleep(min(LOOK_EVERY_S, wait_s))
        return self._wanted

    def _ended(self, outcome: Outcome) -> Outcome:
        self._become(outcome.state, driver_pid=0, words=outcome.words, code=outcome.code, ended_ms=_now_ms())
        progress = self._place.progress()
        if progress is not None:
            progress = progress.at_rest()
            self._place.write_progress(progress)
        self._watch(self._state, progress)
        return outcome

    def _become(self, state: str, **changes: object) -> None:
        since_ms = self._state.since_ms if state == self._state.state else _now_ms()
        self._state = replace(self._state, state=state, since_ms=since_ms, **changes)  # type: ignore[arg-type]  # fields
        self._place.write_state(self._state)


def _opened_log(place: Home) -> IO[bytes]:
    """For appending; one that has grown large makes way, and the one before it goes."""
    place.directory.mkdir(parents=True, exist_ok=True)
    if place.log.exists() and place.log.stat().st_size > LOG_BYTES_MAX:
        place.log.replace(place.log.with_suffix(".1"))
    return place.log.open("ab")


def log_tail(place: Home, lines: int = LOG_TAIL_LINES) -> list[str]:
    """The last lines of what the driver and Spark said."""
    try:
        with place.log.open("rb") as file:
            file.seek(max(0, place.log.stat().st_size - 65_536))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return []


def _kill_group(driver: subprocess.Popen[bytes]) -> None:
    """Whatever a driver leaves behind (its JVM ends when it notices, Python workers may not) goes with it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def supervise_here(place: Home, flow: Flow, job: Job, *, console: bool, watch: Watch) -> Outcome:
    """The whole run in this process; SIGTERM and Ctrl-C stop it gracefully, a second one at once."""
    with place.locked():
        # A backfill that broke off is begun again by hand: it may have sent records already.
        patience = DRIVERS if job.backfill is None else replace(DRIVERS, tries=1)
        state = state_of(place, flow, job)
        supervisor = Supervisor(place, job, state, patience=patience, console=console, watch=watch)
        port = None if flow.admin is None or job.backfill is not None else AdminPort(place, flow.admin)
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def heed(_number: int, _frame: object) -> None:
            supervisor.stop()

        for number in before:
            signal.signal(number, heed)
        try:
            return supervisor.supervise()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if port is not None:
                port.close()


def detach(place: Home, flow: Flow, job: Job) -> int:
    """Starts a supervisor that outlives us; its process id. AlreadyRunning when there is one."""
    with place.locked():
        place.forget_run()
        # In our name until the supervisor has its own; if it never comes to that, ours ends and so does the claim.
        place.write_state(state_of(place, flow, job))
    with _opened_log(place) as log:
        started = subprocess.Popen(
            [*BACKGROUND, place.name], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
        assert started.stdin is not None, "it was given a pipe"
        job.put_into(started.stdin)
    return started.pid


def main(arguments: list[str]) -> int:
    """A supervisor in the background, for `run --detach`."""
    from penstock.spark.pipeline.driver import flow_of

    place = Home(arguments[0])
    job = Job.out_of(sys.stdin.buffer)
    return supervise_here(place, flow_of(job), job, console=False, watch=lambda *_: None).code


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
