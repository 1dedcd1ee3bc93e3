"""Where it happens: a folder, the nodes, and three processes beside them. Knows how each is started and ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from penstock.certificates.client_files import ClientFiles
from penstock.demo import files
from penstock.demo.nodes import Nodes
from penstock.demo.plan import AGENT, BROKEN_SHARE, PIPELINE, ROTATIONS, Plan
from penstock.demo.processes import PENSTOCK, PYTHON, Actor, remember
from penstock.demo.writing import Count
from penstock.spark.kafka_settings import CLIENT_CONFIG_VARIABLE
from penstock.spark.pipeline.home import Home

AGENT_WITHIN_S: Final = 15.0
PIPELINE_WITHIN_S: Final = 25.0
WRITER_WITHIN_S: Final = 5.0
LEISURE, LEISURE_S = 0.1, 3600.0
"""For those who stay: a tenth of the lines, and a day of the log in an hour."""


class Stage:
    """Made before anything runs; `end` leaves nothing running."""

    def __init__(self, nodes: Nodes, plan: Plan) -> None:
        self.nodes, self.plan = nodes, plan
        self.folder = nodes.folder
        lost = ("--lose", str(int(plan.lines_per_s * plan.seconds / 3))) if plan.plant == "lost" else ()
        self.writer = self._writer(*lost)
        self.agent = Actor("agent", [*PENSTOCK, "agent", "run", "-c", "agent.toml"], self.folder)
        state = self.folder / "state"
        # Its own state, so that two demos, or a pipeline of the user's, may have the same name.
        self.pipeline = Actor(
            "pipeline",
            [*PENSTOCK, "pipeline", "run", "pipeline.toml", "--stop-within", "10"],
            self.folder,
            {"XDG_STATE_HOME": str(state), CLIENT_CONFIG_VARIABLE: self._login_of(PIPELINE)},
        )
        self.home = Home(PIPELINE, state / "penstock" / "pipelines")

    @property
    def reach(self) -> dict[str, Any]:
        """How the demo itself reaches the brokers, as settings of any client: it is the first user."""
        return {
            "bootstrap_servers": self.nodes.bootstrap,
            "client_config": str(ClientFiles(self.nodes.security).java),
            "client_id": "demo",
        }

    def _login_of(self, user: str) -> str:
        return str(ClientFiles(self.nodes.security, user).java)

    @property
    def warehouse(self) -> Path:
        return self.folder / "lake"

    @property
    def agent_state(self) -> Path:
        return self.folder / "agent"

    @property
    def actors(self) -> tuple[Actor, ...]:
        return (self.writer, self.agent, self.pipeline)

    def prepare(self) -> None:
        """Writes the two files; they are worth reading when the demo is over."""
        (self.folder / "web").mkdir(parents=True, exist_ok=True)
        bootstrap = self.nodes.bootstrap
        for name, text in (
            ("agent.toml", files.agent_file(bootstrap, self._login_of(AGENT))),
            ("pipeline.toml", files.pipeline_file(bootstrap, self._login_of(PIPELINE))),
        ):
            (self.folder / name).write_text(text, encoding="utf-8")

    def count(self) -> Count | None:
        """What the writer says of itself."""
        return Count.load(self.folder / "count.json")

    def check(self) -> None:
        """`DemoFailed` when somebody has ended who should not."""
        for each in (self.agent, self.pipeline):
            each.check()

    def kill_driver(self) -> int | None:
        """kill -9 of the process that has the Spark session; its id, or None when there is none just now."""
        state = self.home.state()
        if state is None or not state.driver_pid:
            return None
        with suppress(ProcessLookupError):
            os.kill(state.driver_pid, signal.SIGKILL)
        return state.driver_pid

    def kill_agent(self) -> int:
        """kill -9 of the agent, which is started again at once, as a service manager would; who is gone."""
        return self.agent.kill_and_start()

    def write_on(self) -> None:
        """Another writer, for those who stay: the next lines, at a leisurely pace."""
        count = self.count()
        assert count is not None, "the first writer has ended"
        self.writer = self._writer("--first", str(count.lines), "--begin", count.log_time, seconds=LEISURE_S)
        self.writer.start()

    def leave(self) -> None:
        """Everything stays up; `penstock dev stop` finds it."""
        remember(self.folder, self.actors)

    def end(self) -> None:
        """Ends everything, those who take longest first."""
        driver = self._driver()
        for each in (self.pipeline, self.agent, self.writer):
            each.ask_to_end()
        self.writer.end(WRITER_WITHIN_S)
        self.agent.end(AGENT_WITHIN_S)
        self.pipeline.end(PIPELINE_WITHIN_S)
        if driver:
            # A supervisor that was killed leaves its driver, which notices only after a while.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(driver, signal.SIGKILL)
        self.nodes.end_all()

    def _driver(self) -> int:
        state = self.home.state()
        return state.driver_pid if state is not None and state.alive else 0

    def _writer(self, *more: str, seconds: float | None = None) -> Actor:
        plan = self.plan
        pace = plan.lines_per_s if seconds is None else plan.lines_per_s * LEISURE
        seconds = seconds or plan.seconds
        command = [
            *PYTHON, "penstock.demo.writing", "web", "--seconds", str(seconds), "--lines-per-s", str(pace),
            "--rotate-every-s", str(seconds / ROTATIONS), "--broken-share", str(BROKEN_SHARE), *more,
        ]  # fmt: skip
        return Actor("writer", command, self.folder)
