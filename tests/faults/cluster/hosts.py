"""Where nodes run: a network namespace each on a bridge, with links that can be cut and slowed; else the loopback.

Everything has a name of this process, and goes when the network is closed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count

from tests.compat.cluster import Host, loopback_host
from tests.patience import within

CLIENTS = 254
"""The place on a network where clients sit; it can be cut off as a node can."""
# Nobody's address: frames to it arrive nowhere, and nobody is told.
_NOBODY = "02:00:00:00:00:01"
_numbers = count()


class LinksNotCut(Exception):
    """This machine has no namespaces for us."""


def _ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check, timeout=within(10))


@cache
def namespaces_allowed() -> bool:
    """Whether we may make namespaces, bridges and pairs of interfaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"pst{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("link", "add", f"{name}b", "type", "bridge")
        _ip("link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
    except (subprocess.CalledProcessError, OSError):
        return False
    finally:
        _ip("link", "del", f"{name}v", check=False)
        _ip("link", "del", f"{name}b", check=False)
        _ip("netns", "del", name, check=False)
    return True


class Loopback:
    """All nodes on 127.0.0.1. Links cannot be cut."""

    can_cut = False

    def host(self, node_id: int) -> Host:
        return loopback_host(node_id)

    def cut(self, from_id: int, to_ids: Iterable[int]) -> None:
        raise LinksNotCut

    def slow(self, node_id: int, kilobits_per_s: int) -> None:
        raise LinksNotCut

    def heal(self) -> None:
        """There is nothing that could be cut."""

    def close(self) -> None:
        """There is nothing that was made."""


class Bridge:
    """A namespace for each node on a bridge, on which the clients of this process sit too."""

    can_cut = True

    def __init__(self) -> None:
        number = next(_numbers)
        self._name = f"pst{os.getpid() % 100_000}{chr(ord('a') + number % 26)}"
        self._net = f"10.{200 + os.getpid() % 50}.{(os.getpid() // 50 + number) % 250}"
        self._nodes: set[int] = set()
        self._cut: set[tuple[int, int]] = set()
        self._slow: set[int] = set()
        _ip("link", "add", self._name, "type", "bridge")
        _ip("addr", "add", f"{self._net}.{CLIENTS}/24", "dev", self._name)
        _ip("link", "set", self._name, "up")

    def host(self, node_id: int) -> Host:
        name, outer = self._space(node_id), f"{self._name}{node_id}"
        self._nodes.add(node_id)
        _ip("netns", "add", name)
        _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outer, "master", self._name, "up")
        _ip("-n", name, "addr", "add", f"{self._address(node_id)}/24", "dev", "eth0")
        for inner in ("eth0", "lo"):
            _ip("-n", name, "link", "set", inner, "up")
        return Host(name, self._address(node_id), 9092, 9093, ("ip", "netns", "exec", name))

    def cut(self, from_id: int, to_ids: Iterable[int]) -> None:
        """What `from_id` sends to these arrives nowhere, without a word; the other way stays as it is."""
        for to_id in to_ids:
            if to_id != from_id:
                self._neighbour(from_id, "replace", to_id, "lladdr", _NOBODY, "nud", "permanent")
                self._cut.add((from_id, to_id))

    def _neighbour(self, of_id: int, verb: str, to_id: int, *words: str) -> None:
        """What a host believes of the way to another."""
        if of_id == CLIENTS:
            _ip("neigh", verb, self._address(to_id), *words, "dev", self._name)
        else:
            _ip("-n", self._space(of_id), "neigh", verb, self._address(to_id), *words, "dev", "eth0")

    def slow(self, node_id: int, kilobits_per_s: int) -> None:
        """Everything that a node sends goes through a narrow pipe with a short queue."""
        shape = ("tbf", "rate", f"{kilobits_per_s}kbit", "burst", "16kb", "latency", "200ms")
        subprocess.run(
            ["ip", "netns", "exec", self._space(node_id), "tc", "qdisc", "replace", "dev", "eth0", "root", *shape],
            check=True, capture_output=True, timeout=within(10),
        )  # fmt: skip
        self._slow.add(node_id)

    def heal(self) -> None:
        for from_id, to_id in sorted(self._cut):
            self._neighbour(from_id, "del", to_id)
        self._cut.clear()
        for node_id in sorted(self._slow):
            command = ["ip", "netns", "exec", self._space(node_id), "tc", "qdisc", "del", "dev", "eth0", "root"]
            subprocess.run(command, capture_output=True, timeout=within(10), check=False)
        self._slow.clear()

    def close(self) -> None:
        for node_id in self._nodes:
            _ip("link", "del", f"{self._name}{node_id}", check=False)
            _ip("netns", "del", self._space(node_id), check=False)
        _ip("link", "del", self._name, check=False)

    def _space(self, node_id: int) -> str:
        return f"{self._name}-{node_id}"

    def _address(self, node_id: int) -> str:
        return f"{self._net}.{node_id}"


Network = Loopback | Bridge


def new_network() -> Network:
    return Bridge() if namespaces_allowed() else Loopback()


def separate(network: Network, some: Sequence[int], others: Sequence[int]) -> None:
    """No word passes between the two sides."""
    for node_id in some:
        network.cut(node_id, others)
    for node_id in others:
        network.cut(node_id, some)
