"""Ports for nodes on this machine, and the one of a single node's controller, which is kept in its folder.

A port of the range that the system gives to outgoing connections may be taken by one at any moment, so those are left
alone where there are others.
"""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Collection, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
FIRST: Final = 20_000
"""Below, many a service has a port of its own."""
PORT_MAX: Final = 65_535
NODES_MAX: Final = 100
"""So many ports belong to a cluster, from its first on."""
_KEPT: Final = "dev.json"


def is_free(port: int, host: str = HOST) -> bool:
    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True


def ephemeral_ports() -> range:
    """Those that the system gives to outgoing connections."""
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        return range(32_768, 61_000)
    return range(low, high + 1)


def lasting_ports() -> list[int]:
    """Those that only a server takes."""
    ephemeral = ephemeral_ports()
    return [port for port in range(FIRST, PORT_MAX + 1) if port not in ephemeral]


def free_ports(count: int, *, apart_from: Collection[int] = ()) -> list[int]:
    """So many that are free now. In any order: whoever else looks at this moment shall not find the same ones."""
    candidates = [port for port in lasting_ports() if port not in apart_from]
    chosen = _take(random.sample(candidates, len(candidates)), count)
    if len(chosen) == count:
        return chosen
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in bound]


def _take(candidates: Iterable[int], count: int) -> list[int]:
    chosen: list[int] = []
    for port in candidates:
        if len(chosen) == count:
            break
        if is_free(port):
            chosen.append(port)
    return chosen


def controller_port(folder: Path) -> int:
    """The port for the controller of a single node: that of its last life, or another if somebody else has it by now.

    Nobody else knows a quorum of one by its address, so it may move.
    """
    kept = _kept(folder)
    return kept if kept and is_free(kept) else free_ports(1)[0]


def keep_controller_port(folder: Path, port: int) -> None:
    """For the next life. One that cannot be kept is chosen anew then."""
    if port == _kept(folder):
        return
    with suppress(OSError):
        # With log.dirs of its own a node may have no need of the folder.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _KEPT).write_text(json.dumps({"controller_port": port}) + "\n", encoding="utf-8")


def _kept(folder: Path) -> int:
    """0 when nothing is kept that could be a port."""
    try:
        port = json.loads((folder / _KEPT).read_text(encoding="utf-8"))["controller_port"]
    except (OSError, ValueError, LookupError, TypeError):
        return 0
    return port if isinstance(port, int) and 0 < port <= PORT_MAX else 0
