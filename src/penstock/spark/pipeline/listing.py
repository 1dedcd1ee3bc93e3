"""Pipelines on this machine and, through the cluster, elsewhere, as one list."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.client.errors import ClientError
from penstock.spark.pipeline import freshness, home, lag
from penstock.spark.pipeline.home import Home, SinkProgress, State, homes
from penstock.spark.progress.status import PipelineStatus, ProgressRecord, statuses
from penstock.transport.dial import LinkError

QUIET_MS = 3_000
"""How long a cluster is waited for that nobody named."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A pipeline and how it is. `here` says that its process is, or was, on this machine."""

    name: str
    state: str
    here: bool
    host: str
    pid: int
    started_ms: int
    master: str
    file: str
    bootstrap: str
    restarts: int
    words: str
    sinks: tuple[SinkProgress, ...]

    @property
    def running(self) -> bool:
        return self.state in home.ALIVE

    @property
    def healthy(self) -> bool:
        """Whether nothing of it needs anybody's eye."""
        bad = any(sink.state == "failed" for sink in self.sinks)
        return not bad and self.state not in (home.FAILED, home.DIED, "silent")

    @property
    def lag(self) -> int | None:
        """Records that some sink has still to take, each once; None as long as a sink does not know where it is."""
        return lag.of_all(self.sinks)

    @property
    def rows_per_s(self) -> float:
        return sum(sink.rows_per_s for sink in self.sinks)

    def data(self) -> dict[str, Any]:
        return {**asdict(self), "lag": self.lag, "rows_per_s": self.rows_per_s}


def here() -> dict[str, Listed]:
    """Those that ran on this machine, by name."""
    found = {}
    for place in homes():
        state = place.state()
        if state is not None:
            found[state.name] = _local(state, place)
    return found


def elsewhere(bootstrap: str, settings: Mapping[str, Any] | None = None) -> dict[str, Listed]:
    """Those that the cluster has heard of within a week, by name; raises when it cannot be asked."""
    return {each.name: _remote(each, bootstrap) for each in statuses(bootstrap, settings=settings)}


def merged(local: Mapping[str, Listed], remote: Mapping[str, Listed]) -> list[Listed]:
    """One entry a name. What runs here is known best here; what ended here may run elsewhere by now."""
    found = dict(remote)
    for name, ours in local.items():
        theirs = remote.get(name)
        if theirs is None or ours.running or not (theirs.running and not theirs.here):
            found[name] = ours
    return [found[name] for name in sorted(found)]


def with_lag_of_now(
    found: list[Listed],
    settings_for: Callable[[str], Mapping[str, Any]],
    silent: Callable[[str], None] = lambda _: None,
) -> list[Listed]:
    """The same, with how fresh they are, as far as brokers can be asked, each address by its own settings.

    `silent` is told the addresses at which none answers: there the lag stays that of the last batches.
    """
    ends: dict[str, lag.Ends] = {}
    times: dict[str, freshness.Times] = {}
    for bootstrap in sorted({each.bootstrap for each in found if lag.logs_of(each.sinks)}):
        sinks = [sink for each in found if each.bootstrap == bootstrap for sink in each.sinks]
        settings = {**settings_for(bootstrap), "bootstrap_servers": bootstrap}
        try:
            ends[bootstrap] = lag.ask_ends(settings, lag.logs_of(sinks), QUIET_MS / 1000)
            places = freshness.places_of(lag.as_of(sink, ends[bootstrap]) for sink in sinks)
            times[bootstrap] = freshness.ask_times(settings, places, QUIET_MS / 1000)
        except (ClientError, LinkError, OSError, TimeoutError):
            silent(bootstrap)
    return [
        replace(each, sinks=tuple(_as_of_now(sink, ends, times, each.bootstrap) for sink in each.sinks))
        for each in found
    ]


def _as_of_now(
    sink: SinkProgress, ends: Mapping[str, lag.Ends], times: Mapping[str, freshness.Times], bootstrap: str
) -> SinkProgress:
    return freshness.as_fresh(lag.as_of(sink, ends.get(bootstrap, {})), times.get(bootstrap, {}))


def _local(state: State, place: Home) -> Listed:
    progress = place.progress()
    if progress is not None and not state.alive:
        progress = progress.at_rest()
    return Listed(
        name=state.name,
        state=state.state,
        here=True,
        host=state.host,
        pid=state.pid,
        started_ms=state.started_ms,
        master=state.master,
        file=state.file,
        bootstrap=state.bootstrap,
        restarts=state.restarts,
        words=state.words,
        sinks=() if progress is None else progress.sinks,
    )


def _remote(status: PipelineStatus, bootstrap: str) -> Listed:
    return Listed(
        name=status.name,
        state=status.state,
        here=status.host == socket.gethostname(),
        host=status.host,
        pid=status.pid,
        started_ms=status.started_ms,
        master=status.master,
        file=status.file,
        bootstrap=bootstrap,
        restarts=status.restarts,
        words=status.error,
        sinks=tuple(_sink(query, status) for query in status.queries),
    )


def _sink(query: ProgressRecord, status: PipelineStatus) -> SinkProgress:
    state = "running" if query.active and status.state == home.RUNNING else "failed" if query.error else "stopped"
    return SinkProgress(
        sink=query.query.removeprefix(f"{status.name}-"),
        kind="",
        target="",
        state=state,
        query=query.query,
        batch_id=query.batch_id,
        rows=query.rows,
        rows_per_s=query.processed_rows_per_s if query.active else 0.0,
        lag=query.lag,
        batch_ms=query.batch_ms,
        watermark=query.watermark,
        state_rows=query.state_rows,
        late_rows=query.late_rows,
        expectations=query.expectations,
        at_ms=query.at_ms,
        error=query.error,
        partitions=query.partitions,
        fresh_within_s=status.fresh_within_s.get(query.query, 0.0),
        state_bytes=query.state_bytes,
    )


def stop_here(name: str, *, within_s: float) -> bool:
    """Asks the supervisor on this machine to stop and waits for it; whether it did in time."""
    place = Home(name)
    state = place.state()
    if state is None or not state.alive:
        return True
    os.kill(state.pid, signal.SIGTERM)
    return _wait(lambda: not _alive(place), within_s)


def stop_elsewhere(name: str, bootstrap: str, *, within_s: float, settings: Mapping[str, Any] | None = None) -> bool:
    """Asks through the cluster and waits until the pipeline says that it stopped; whether it did in time."""
    from penstock.spark.progress.status import STOP, ask

    ask(bootstrap, name, STOP, settings)

    def stopped() -> bool:
        found = elsewhere(bootstrap, settings).get(name)
        return found is None or not found.running

    return _wait(stopped, within_s, pause_s=1.0)


def wait_until_begun(name: str, *, within_s: float) -> State | None:
    """Until a pipeline that was just started runs or has ended; its state, None when neither came in time."""
    place = Home(name)
    found: State | None = None

    def begun() -> bool:
        nonlocal found
        state = place.state()
        found = state if state is not None and state.state not in (home.STARTING, home.RESTARTING) else None
        return found is not None

    _wait(begun, within_s)
    return found


def _alive(place: Home) -> bool:
    state = place.state()
    return state is not None and state.alive


def _wait(condition: Any, within_s: float, pause_s: float = 0.1) -> bool:
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(pause_s)
    return True
