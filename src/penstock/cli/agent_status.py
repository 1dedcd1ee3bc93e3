"""`penstock agent status`: finds a running agent by its state and asks it how it is."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from penstock.cli import on_a_loop
from penstock.cli.agent_choice import STATE_FOLDER
from penstock.cli.failures import NOT_FOUND, OK, UNHEALTHY
from penstock.cli.output import show, table
from penstock.cli.watching import watch

if TYPE_CHECKING:
    from penstock.agent.admin.snapshot import Snapshot
    from penstock.agent.presence import Presence
    from penstock.agent.view.rates import Rates

DEFAULT_FILE: Final = "agent.toml"
ANSWER_WITHIN_S: Final = 5.0
ANYWHERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that one can listen on but not call."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which agent, and how much of it."""

    file: Path | None
    state_dir: Path | None
    files: bool

    def folder(self) -> Path:
        """Where its state is."""
        from penstock.agent.settings import read_agent

        if self.state_dir is not None:
            return self.state_dir
        if self.file is not None or Path(DEFAULT_FILE).exists():
            return read_agent(self.file or Path(DEFAULT_FILE)).state_dir
        return _only_one_here()


def _only_one_here() -> Path:
    from penstock.agent.presence import find

    running = [path for path in sorted(Path(STATE_FOLDER).glob("*")) if find(path) is not None]
    if len(running) > 1:
        choices = ", ".join(map(str, running))
        raise click.UsageError(f"several agents run here; say which: --state-dir with one of {choices}")
    return running[0] if running else Path(STATE_FOLDER)


class NotRunning(Exception):
    """Nobody answers there; the words say so."""


def show_status(wanted: Wanted, style: str, every_s: float | None) -> int:
    """The exit code. With `every_s` it is shown again and again, until Ctrl-C or until the agent ends."""
    try:
        if every_s is not None:
            on_a_loop.run(_watched(wanted, style, every_s))
        snapshot = _ask(wanted)
    except KeyboardInterrupt:
        return OK
    except NotRunning as failure:
        click.echo(f"penstock: {failure}", err=True)
        return NOT_FOUND
    show(_data(snapshot), style, _text(snapshot, wanted.files))
    return UNHEALTHY if _reasons(snapshot) else OK


async def _watched(wanted: Wanted, style: str, every_s: float) -> None:
    from penstock.agent.view.rates import Rates

    rates = Rates()

    async def look() -> tuple[Any, str]:
        snapshot = await asyncio.to_thread(_ask, wanted)
        return _data(snapshot), _text(snapshot, wanted.files, rates)

    await watch(look, style, every_s, lambda: False)


def _data(snapshot: Snapshot) -> dict[str, Any]:
    return {**snapshot.data(), "reasons": _reasons(snapshot)}


def _reasons(snapshot: Snapshot) -> list[str]:
    from penstock.agent.admin.verdicts import readiness

    return readiness(snapshot)


def _text(snapshot: Snapshot, files: bool, rates: Rates | None = None) -> str:
    from penstock.agent.view.numbers import megabytes, rate
    from penstock.agent.view.sentences import FILE_HEADINGS, HEADINGS, description, file_rows, rows, words_of

    headings: tuple[str, ...] = HEADINGS
    lines = rows(snapshot)
    if rates is not None:
        now = rates.feed(snapshot.inputs, time.monotonic())
        headings = (*HEADINGS[:2], "EVENTS/S", "MB/S", *HEADINGS[2:])
        lines = [
            (*row[:2], rate(now[row[0]].events_per_s), megabytes(now[row[0]].bytes_per_s), *row[2:]) for row in lines
        ]
    said = [*description(snapshot), "", table(headings, lines)]
    said += ["", *words_of(snapshot)] if words_of(snapshot) else []
    if files:
        said += ["", table(FILE_HEADINGS, file_rows(snapshot))]
    return "\n".join(said)


def _ask(wanted: Wanted) -> Snapshot:
    """NotRunning when there is nobody."""
    from penstock.agent.admin.snapshot import Snapshot, decode
    from penstock.agent.presence import find

    folder = wanted.folder()
    found = find(folder)
    if found is None:
        hint = "" if wanted.state_dir else "; one that was started with --state-dir is found with it"
        raise NotRunning(f"no agent runs on {folder}{hint}")
    if not found.admin:
        click.echo("its admin port is off, so it tells no more than that it runs", err=True)
        return Snapshot(
            name=found.name, state="running", version=found.version, pid=found.pid, file=found.file, brokers_up=True
        )
    try:
        return decode(_fetch(found, files=wanted.files))
    except (OSError, ValueError) as failure:
        raise NotRunning(
            f"process {found.pid} does not answer at {found.admin} ({failure}); if it was killed, {folder}/agent.json"
            " is all that is left of it"
        ) from failure


def _fetch(found: Presence, *, files: bool) -> bytes:
    import http.client

    host, _, port = found.admin.rpartition(":")
    plain = host.removeprefix("[").removesuffix("]")
    link = http.client.HTTPConnection(ANYWHERE.get(plain, plain), int(port), timeout=ANSWER_WITHIN_S)
    try:
        link.request("GET", "/status?files=1" if files else "/status")
        reply = link.getresponse()
        body = reply.read()
    except http.client.HTTPException as failure:
        raise ValueError(f"that is no agent: {failure}") from failure
    finally:
        link.close()
    if reply.status != 200:
        raise ValueError(f"it says {reply.status}")
    return body
