"""Pipelines whose supervisor is, or was, on this machine: of these the file is known, and they can be started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from penstock.console.failures import Declined
from penstock.model.errors import PenstockError
from penstock.spark.pipeline.home import Home, SinkProgress, State
from penstock.spark.progress.status import PipelineStatus

if TYPE_CHECKING:
    from penstock.spark.pipeline.flow import Flow

STARTED_WITHIN_S: Final = 75.0
REDRIVEN_WITHIN_S: Final = 75.0
LETTERS_MAX: Final = 50_000
"""Sent by one press of a button; the next one goes on from there."""
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


def sources_with_letters(pipeline: PipelineStatus) -> list[str]:
    """The sources whose dead letters are kept, by the pipeline's file; none where that is not on this machine."""
    flow = flow_here(pipeline)
    return [] if flow is None else [source.name for source in flow.sources if source.keeps_letters and not source.table]


def flow_here(pipeline: PipelineStatus) -> Flow | None:
    """What a pipeline's file says now."""
    if state_here(pipeline) is None:
        return None
    from penstock.spark.pipeline.reading import read_flow

    try:
        return read_flow(Path(pipeline.file))
    except (PenstockError, OSError):
        return None


async def start(pipeline: PipelineStatus) -> str:
    """As `penstock pipeline run FILE --detach` does; what that said. Declined when it does not run in the end."""
    _, said = await _command(pipeline, "run", "--detach", "--master", pipeline.master, within_s=STARTED_WITHIN_S)
    return said


async def redrive(pipeline: PipelineStatus, source: str, *, dry_run: bool) -> dict[str, Any]:
    """As `penstock pipeline redrive FILE --source NAME` does, for so many letters and so long; what that told."""
    bounds = ("--limit", str(LETTERS_MAX), "--quiet", "--format", "json")
    more = ("--dry-run",) if dry_run else ()
    told, _ = await _command(pipeline, "redrive", "--source", source, *bounds, *more, within_s=REDRIVEN_WITHIN_S)
    found = msgspec.json.decode(told)
    return dict(found)


async def _command(pipeline: PipelineStatus, verb: str, *words: str, within_s: float) -> tuple[bytes, str]:
    """Runs a command of `penstock pipeline` on the pipeline's file: what it gave, and what it said beside that."""
    state = state_here(pipeline)
    assert state is not None, "whoever asks has looked"
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "penstock.cli.main", "pipeline", verb, *words),
        *("--bootstrap", state.bootstrap, "--", state.file),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(state.file).parent,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(within_s):
            told, said = await child.communicate()
    except TimeoutError:
        message = f"`penstock pipeline {verb}` of {pipeline.name} is not done in {within_s:.0f} s"
        raise Declined(504, "timed_out", message, "it goes on from there when it is asked again") from None
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
    words_said = said.decode("utf-8", "replace").strip()[-TAIL:]
    if child.returncode:
        raise Declined(400, "failed", words_said or f"`penstock pipeline {verb}` of {pipeline.name} failed")
    return told, words_said
