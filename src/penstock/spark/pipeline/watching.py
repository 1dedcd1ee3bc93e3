"""Who looks how far behind sinks are and how fresh, beside a driver: every other second, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.freshness import Clockwork, Times, as_fresh
from penstock.spark.pipeline.home import Progress, SinkProgress
from penstock.spark.pipeline.lag import Ends, as_of, ask_ends, logs_of
from penstock.spark.pipeline.preflight import ASK_WITHIN_MS
from penstock.spark.pipeline.wiring import DEFAULT_BOOTSTRAP
from penstock.spark.progress.patience import PATIENCE_S
from penstock.spark.source.client_settings import admin_settings, client_settings

LOOK_EVERY_S: Final = 2.0


def settings_of(flow: Flow) -> dict[str, str]:
    """How the brokers of a flow are asked, with no more patience than a look has."""
    settings = client_settings({**flow.kafka, "bootstrap.servers": flow.bootstrap or DEFAULT_BOOTSTRAP})
    return admin_settings(settings, ASK_WITHIN_MS)


class LagWatch:
    """Looks every other second, on a thread of its own: a broker that is away holds nobody up."""

    def __init__(self, settings: Mapping[str, Any], sinks: Callable[[], Iterable[SinkProgress]]) -> None:
        self._settings, self._sinks = settings, sinks
        self._ends: Ends = {}
        self._clockwork = Clockwork()
        self._times: Times = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-lag", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(timeout=2 * PATIENCE_S)

    def over(self, progress: Progress) -> Progress:
        """What a runner tells, with the lag and the freshness of now."""
        ends, times = self._ends, self._times
        return replace(progress, sinks=tuple(as_fresh(as_of(sink, ends), times) for sink in progress.sinks))

    def _run(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            try:
                sinks = tuple(self._sinks())
                self._ends = ask_ends(self._settings, logs_of(sinks))
                self._times = dict(self._clockwork.look(self._settings, [as_of(sink, self._ends) for sink in sinks]))
            except Exception:  # whoever cannot be asked may be back; until then the last batch's lag is shown
                continue
