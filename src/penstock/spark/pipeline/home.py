"""What is kept of pipelines on this machine: one directory a name, below $XDG_STATE_HOME/penstock/pipelines.

state.json      who runs it: process id and when that process began, so that another one with a recycled id is not
                taken for it; what is run, and how it ended
progress.json   how every sink is doing, written by the driver every second
outcome.json    how the driver ended, in its own words; missing when it was killed
log             what the driver and Spark said
lock            held by the supervisor while it lives

What a driver is asked to do may hold passwords, so it is in no file: it comes through a pipe.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any, Final, Self

from penstock.processes import is_running
from penstock.spark.errors import SparkRoomError
from penstock.spark.progress.records import ExpectationCount, PartitionProgress, expectations_of_json
from penstock.whole_files import OWNERS_ALONE, write_whole

STARTING, RUNNING, RESTARTING, STOPPING = "starting", "running", "restarting", "stopping"
FINISHED, STOPPED, FAILED, DIED = "finished", "stopped", "failed", "died"
ALIVE: Final = (STARTING, RUNNING, RESTARTING, STOPPING)
GOING: Final = ("waiting", RUNNING, "retrying")
UNKNOWN_MS: Final = -1
"""A time that nobody could tell."""
"""States of a sink that has not ended."""


class AlreadyRunning(SparkRoomError):
    """A pipeline of this name runs on this machine already."""


@dataclass(frozen=True, slots=True)
class State:
    """A run of a pipeline, as its supervisor tells it."""

    name: str
    state: str
    pid: int
    born: str
    """When the process began; with the id this names one process for ever."""
    host: str
    file: str
    digest: str
    master: str
    bootstrap: str
    warehouse: str
    started_ms: int
    ended_ms: int = 0
    driver_pid: int = 0
    restarts: int = 0
    words: str = ""
    code: int = 0
    since_ms: int = 0
    """When it became what it is."""

    @property
    def alive(self) -> bool:
        return self.state in ALIVE

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        return cls(**_known(cls, given))


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """How one sink is doing. `state` is waiting, running, retrying, finished, stopped or failed."""

    sink: str
    kind: str
    target: str
    state: str
    query: str
    batch_id: int = -1
    rows: int = 0
    """Read since the driver began: a step may make fewer or more of them."""
    rows_per_s: float = 0.0
    lag: int = 0
    batch_ms: int = 0
    watermark: str = ""
    state_rows: int = 0
    late_rows: int = 0
    """Dropped since the driver began, because they came after the watermark."""
    at_ms: int = 0
    """When its last batch was."""
    failures: int = 0
    error: str = ""
    partitions: tuple[PartitionProgress, ...] = ()
    """How far it is in each; `lag` is the sum of theirs."""
    waiting_since_ms: int = UNKNOWN_MS
    """When the oldest record was written that it has not taken; 0 when none waits, -1 when that is not known."""
    fresh_within_s: float = 0.0
    """How old that record may be, by the file; 0 when nothing is promised."""
    state_bytes: int = 0
    expectations: tuple[ExpectationCount, ...] = ()
    """Since the driver began, of all that it is made of."""

    @property
    def begun(self) -> bool:
        """Whether it had a batch: before that nobody knows where it is."""
        return self.batch_id >= 0

    def fresh_s(self, now_ms: int) -> float | None:
        """How long the oldest record waits that it has not taken; None when nobody knows."""
        if self.waiting_since_ms == UNKNOWN_MS:
            return None
        return max(0, now_ms - self.waiting_since_ms) / 1000 if self.waiting_since_ms else 0.0

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        places = tuple(PartitionProgress(**_known(PartitionProgress, each)) for each in given.get("partitions", ()))
        return cls(**{**_known(cls, given), "partitions": places, "expectations": expectations_of_json(given)})


def failures_of(sinks: Iterable[SinkProgress]) -> str:
    """Why sinks were given up, for people; empty when none was."""
    return "; ".join(f"sink {sink.sink}: {sink.error}" for sink in sinks if sink.state == FAILED)


@dataclass(frozen=True, slots=True)
class Progress:
    """All sinks at one moment."""

    at_ms: int
    state: str
    sinks: tuple[SinkProgress, ...] = ()

    def at_rest(self) -> Progress:
        """The same when nobody works any more: a driver that was killed cannot say of its sinks that they stopped."""
        return replace(
            self,
            sinks=tuple(
                replace(sink, state=STOPPED, rows_per_s=0.0) if sink.state in GOING else sink for sink in self.sinks
            ),
        )

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        sinks = tuple(SinkProgress.of_json(each) for each in given.get("sinks", ()))
        return cls(**{**_known(cls, given), "sinks": sinks})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a driver ended. `final` says that another try would end the same way."""

    code: int
    words: str = ""
    final: bool = True
    state: str = FINISHED


@dataclass(frozen=True, slots=True)
class Job:
    """What a driver is asked to do. There may be passwords among its settings."""

    file: str
    bootstrap: str
    master: str
    kafka: dict[str, str] = field(default_factory=dict, repr=False)
    once: bool = False
    sinks: tuple[str, ...] = ()
    stop_within_s: float = 30.0
    restarts: int = 0
    backfill: dict[str, str] | None = None
    renewal: dict[str, str] | None = None

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        known = _known(cls, given)
        return cls(**{**known, "sinks": tuple(known.get("sinks", ()))})

    def put_into(self, pipe: IO[bytes]) -> None:
        """The whole of it, and the end. A process that is gone already says why in its log."""
        with suppress(BrokenPipeError), pipe:
            pipe.write(json.dumps(asdict(self)).encode())

    @classmethod
    def out_of(cls, pipe: IO[bytes]) -> Self:
        """What `put_into` has put into the other end."""
        try:
            found = json.loads(pipe.read())
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SparkRoomError("nobody says what to do: a driver is started by `penstock pipeline run`")
        return cls.of_json(found)


def pipelines_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "penstock" / "pipelines"


class Home:
    """The directory of one pipeline."""

    def __init__(self, name: str, directory: Path | None = None) -> None:
        self.name = name
        self.directory = (directory or pipelines_directory()) / name

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def state(self) -> State | None:
        """As it truly is: a run whose process is gone without a word has `died`."""
        found = self._read("state.json")
        if found is None:
            return None
        try:
            state = State.of_json(found)
        except TypeError:
            return None
        if state.alive and not is_running(state.pid, state.born):
            words = "its process is gone without a word; the log says more"
            return State(**{**asdict(state), "state": DIED, "words": words, "code": 1})
        return state

    def write_state(self, state: State) -> None:
        self._write("state.json", asdict(state))

    def progress(self) -> Progress | None:
        found = self._read("progress.json")
        return None if found is None else Progress.of_json(found)

    def write_progress(self, progress: Progress) -> None:
        self._write("progress.json", asdict(progress))

    def outcome(self) -> Outcome | None:
        found = self._read("outcome.json")
        return None if found is None else Outcome(**_known(Outcome, found))

    def write_outcome(self, outcome: Outcome) -> None:
        self._write("outcome.json", asdict(outcome))

    def forget_run(self) -> None:
        """Before a driver starts: what the last one said is no longer true."""
        # Earlier releases left job.json, with the passwords that were in it.
        for name in ("outcome.json", "progress.json", "job.json"):
            (self.directory / name).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held while a supervisor runs; AlreadyRunning when another one does. The system frees it, come what may."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise AlreadyRunning(
                    f"pipeline {self.name} runs on this machine already: `penstock pipeline status {self.name}` shows "
                    f"it, `penstock pipeline stop {self.name}` stops it"
                ) from None
            yield

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.directory / name).read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        write_whole(self.directory / name, json.dumps(values), mode=OWNERS_ALONE)


def homes() -> list[Home]:
    """All pipelines that ever ran here, by name."""
    directory = pipelines_directory()
    if not directory.is_dir():
        return []
    return [Home(entry.name) for entry in sorted(directory.iterdir()) if (entry / "state.json").is_file()]


def _known(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a later version added is passed over."""
    return {item.name: given[item.name] for item in fields(kind) if item.name in given}
