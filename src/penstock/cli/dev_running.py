"""`penstock dev --nodes N` in the foreground: starts the nodes, tells when one is gone, stops all in the end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import click

from penstock.cli.dev_cluster import DevCluster, find
from penstock.cli.dev_console import DevConsole
from penstock.cli.dev_processes import stop_all, wait_ready
from penstock.cli.output import terminal_columns
from penstock.model.errors import PenstockError
from penstock.processes import command_line

LOOK_EVERY_S = 0.2
ONE_WISH_S = 1.0
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Foreground:
    """The command that runs a cluster. `dev stop` finds it by `dev.pid` in the folder."""

    def __init__(self, folder: Path) -> None:
        self._pid_file = folder.absolute() / "dev.pid"

    @property
    def pid(self) -> int | None:
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return None
        # It is some `penstock dev …`; which folder it runs need not stand in its command line.
        words = command_line(pid).split()
        return pid if "dev" in words else None

    def write(self) -> None:
        self._pid_file.write_text(f"{os.getpid()}\n")

    def forget(self) -> None:
        self._pid_file.unlink(missing_ok=True)


def run(cluster: DevCluster, *, ephemeral: bool, log_level: str, log_format: str, console: bool) -> None:
    """Returns after Ctrl-C or SIGTERM, when all nodes are stopped."""
    running = [node for node in cluster.processes() if node.pid is not None]
    if running:
        raise PenstockError(
            f"node {running[0].node_id} of {cluster.folder} runs already (process {running[0].pid});"
            f" `penstock dev stop --data-dir {cluster.folder}` stops it"
        )
    cluster.check_ports(*cluster.nodes)
    signals = _Signals()
    foreground = Foreground(cluster.folder)
    foreground.write()
    beside = DevConsole(cluster.folder, cluster.bootstrap, secure=cluster.secure)
    try:
        nodes = cluster.processes()
        for node in nodes:
            node.start(log_level=log_level, log_format=log_format)
        try:
            wait_ready(nodes, stopping=signals.came)
            if not signals.came():
                _announce(cluster, ephemeral, beside.start() if console else None)
                _watch(cluster, signals, beside)
        finally:
            beside.stop()
            # Those that `dev start` added meanwhile are in the file.
            now = find(cluster.folder) or cluster
            stop_all(now.processes(), again=signals.came_again)
    finally:
        # Whoever waits for the file may signal once more while Python ends, which would not count as a clean end.
        signals.ignore()
        foreground.forget()


class _Signals:
    """The signals that ask us to stop. Several at once are one wish; one that comes later is impatience."""

    def __init__(self) -> None:
        self._first_s, self._impatient, self._woken = 0.0, False, threading.Event()
        for number in STOPPING:
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        now_s = time.monotonic()
        self._first_s = self._first_s or now_s
        self._impatient = now_s - self._first_s >= ONE_WISH_S
        self._woken.set()

    def ignore(self) -> None:
        """All is stopped; what comes from now on asks for nothing."""
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)

    def came(self) -> bool:
        return self._first_s > 0

    def came_again(self) -> bool:
        return self._impatient

    def wait(self, timeout_s: float) -> bool:
        return self._woken.wait(timeout_s)


def _watch(cluster: DevCluster, signals: _Signals, console: DevConsole) -> None:
    """Tells of nodes that come and go, until a signal comes."""
    up = {node.node_id: node for node in cluster.processes()}
    gone: set[int] = set()
    while not signals.wait(LOOK_EVERY_S):
        ended = console.ended()
        if ended is not None:
            click.echo(ended, err=True)
        now = find(cluster.folder) or cluster
        for node_id in sorted(up.keys() - set(now.nodes)):
            del up[node_id]
            gone.discard(node_id)
            click.echo(f"node {node_id} is no part of the cluster any more", err=True)
        for node_id in now.nodes:
            node = up.setdefault(node_id, cluster.process(node_id))
            if node.pid is None and node_id not in gone:
                gone.add(node_id)
                _tell_gone(now, node_id)
            elif node.pid is not None and node_id in gone:
                gone.discard(node_id)
                click.echo(f"node {node_id} is back", err=True)


def _tell_gone(cluster: DevCluster, node_id: int) -> None:
    """On a terminal the command has a line of its own where it would be broken: somebody will copy it."""
    if node_id in cluster.leaving:
        what = f"node {node_id} has stopped; let the cluster forget it with:"
        command = f"penstock cluster decommission {node_id} {cluster.asked_at(cluster.address(cluster.nodes[0]))}"
    else:
        what = f"node {node_id} is gone; bring it back with:"
        command = f"penstock dev start {node_id} --data-dir {cluster.folder}"
    columns = terminal_columns(sys.stderr)
    fits = columns is None or len(f"{what} {command}") <= columns
    click.echo(f"{what} {command}" if fits else f"{what}\n  {command}", err=True)


def _announce(cluster: DevCluster, ephemeral: bool, console: str | None) -> None:
    last = cluster.nodes[-1]
    click.echo("Penstock is ready.")
    click.echo(f"  bootstrap   {cluster.bootstrap}")
    if console is not None:
        click.echo(f"  console     {console}")
    click.echo(f"  data        {cluster.folder}{' (gone when the nodes stop)' if ephemeral else ''}")
    click.echo(f"  logs        {cluster.folder}/node-1.log and so on")
    if cluster.secure:
        from penstock.cli.dev_secure import announce

        announce(cluster.folder, cluster.bootstrap)
    click.echo(f"  kill one    penstock dev kill {last} --data-dir {cluster.folder}")
    click.echo(f"  try         penstock topic create clicks -p 6 {cluster.asked_at(cluster.address(cluster.nodes[0]))}")
