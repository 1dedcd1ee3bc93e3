"""A running pipeline tells the cluster how it is, and listens whether it is wanted to stop. On a thread of its own."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from typing import Final

from penstock.spark.pipeline import home
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.objectives import promises
from penstock.spark.pipeline.wiring import DEFAULT_BOOTSTRAP
from penstock.spark.progress.status import FAILED, RUNNING, STOP, STOPPED, PipelineRecord, follow_control, tell
from penstock.spark.source.client_settings import security_of

HEARTBEAT_S: Final = 10.0
ASK_EVERY_S: Final = 2.0

_STATES: Final = {home.FINISHED: STOPPED, home.STOPPED: STOPPED, home.FAILED: FAILED}

_log = logging.getLogger("penstock.spark.pipeline")


class Telling:
    """Sets `stop` when somebody elsewhere wants the pipeline stopped. Nothing here fails or holds up the pipeline."""

    def __init__(self, flow: Flow, stop: threading.Event, *, restarts: int = 0) -> None:
        self._flow, self._stop, self._restarts = flow, stop, restarts
        self._bootstrap = flow.bootstrap or DEFAULT_BOOTSTRAP
        self._login = security_of({**flow.kafka, "bootstrap.servers": self._bootstrap})
        self._began_ms = time.time_ns() // 1_000_000
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-telling", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self, state: str, words: str = "") -> None:
        """The last word, said within two seconds or not at all."""
        self._over.set()
        self._thread.join(timeout=5.0)
        tell(self._bootstrap, self._record(_STATES.get(state, RUNNING), words), self._login)

    def _run(self) -> None:
        control = follow_control(self._bootstrap, self._flow.name, self._login)
        told_s = -HEARTBEAT_S
        while not self._over.is_set():
            if time.monotonic() - told_s >= HEARTBEAT_S or told_s < 0:
                told_s = time.monotonic()
                tell(self._bootstrap, self._record(RUNNING), self._login)
            if control.check() == STOP:
                _log.info("asked to stop through the cluster")
                self._stop.set()
            self._over.wait(ASK_EVERY_S)

    def _record(self, state: str, words: str = "") -> PipelineRecord:
        return PipelineRecord(
            name=self._flow.name,
            state=state,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_ms=self._began_ms,
            at_ms=time.time_ns() // 1_000_000,
            master=self._flow.spark.master,
            digest=self._flow.digest,
            heartbeat_ms=int(HEARTBEAT_S * 1000),
            bootstrap=self._bootstrap,
            file=str(self._flow.path),
            error=words,
            restarts=self._restarts,
            fresh_within_s=promises(self._flow),
        )
