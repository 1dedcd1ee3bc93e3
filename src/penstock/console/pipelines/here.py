"""Pipelines whose supervisor is, or was, on this machine: of these the file is known, and they can be started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final

from penstock.console.failures import Declined
from penstock.spark.pipeline.home import Home, SinkProgress, State
from penstock.spark.progress.status import PipelineStatus

STARTED_WITHIN_S: Final = 75.0
TAIL: Final = 2_000


def state_here(pipeline: PipelineStatus) -> State | None:
    """Its last run on this machine, if that is the run that the cluster has heard of."""
    if pipeline.host != socket.gethostname():
        return None
    state = Home(pipeline.name).state()
    if state is None or state.file != pipeline.file:
        return None
    return state


def sinks_here(pipeline: PipelineStatus) -> tuple[SinkProgress, ...]:
    """What its driver says of its sinks: where they lead is not told on the topic."""
    if state_here(pipeline) is None:
        return ()
    progress = Home(pipeline.name).progress()
    return () if progress is None else progress.sinks


def why_not_start(pipeline: PipelineStatus) -> str:
    """Why it cannot be started from here; empty when it can."""
    state = state_here(pipeline)
    if state is None:
        return f"it ran on {pipeline.host}, where its file is"
    if state.alive:
        return f"its process is still there: it is {state.state}"
    return "" if Path(state.file).is_file() else f"its file {state.file} is gone"


async def start(pipeline: PipelineStatus) -> str:
    """As `penstock pipeline run FILE --detach` does; what that said. Declined when it does not run in the end."""
    state = state_here(pipeline)
    assert state is not None, "whoever asks has looked"
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "penstock.cli.main", "pipeline", "run", "--detach", "--master", state.master),
        *("--bootstrap", state.bootstrap, "--", state.file),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(state.file).parent,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(STARTED_WITHIN_S):
            _, said = await child.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)
        raise Declined(
            504, "timed_out", f"{pipeline.name} is still starting", f"its log is {Home(pipeline.name).log}"
        ) from None
    words = said.decode("utf-8", "replace").strip()[-TAIL:]
    if child.returncode:
        raise Declined(400, "failed", words or f"{pipeline.name} did not start")
    return words
