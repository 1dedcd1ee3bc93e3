"""Where nodes run: a network namespace each, joined by a switch of our own (`switch.py`); else the loopback.

Links are directed, and several troubles may lie on one at a time. Everything has a name of this process, and goes when
the network is closed; devices go with the switch, even when this process is killed, and namespaces with the next run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count, product

from tests.compat.cluster import Host, loopback_host
from tests.faults.cluster.links import CUT, Manner, Pair
from tests.faults.cluster.switch import mac
from tests.leftovers import note_command
from tests.patience import within

CLIENTS = 254
"""The place on a network where clients sit; it can be cut off as a node can."""
HOSTS_MAX = 8
# Fewer and larger frames: the switch is a process beside the nodes, on the same cores.
_MTU = 9_000
_numbers = count()


class LinksNotCut(Exception):
    """This machine has no namespaces for us."""


def _ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check, timeout=within(10))


@cache
def namespaces_allowed() -> bool:
    """Whether we may make namespaces and TAP devices."""
    if os.geteuid() != 0 or shutil.which("ip") is None or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return False
    name = f"pst{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("tuntap", "add", "dev", f"{name}t", "mode", "tap")
        _ip("link", "set", f"{name}t", "netns", name)
    except (subprocess.CalledProcessError, OSError):
        return False
    finally:
        _ip("link", "del", f"{name}t", check=False)
        _ip("netns", "del", name, check=False)
    return True


class Loopback:
    """All nodes on 127.0.0.1. Links cannot be cut."""

    can_cut = False

    def host(self, node_id: int) -> Host:
        return loopback_host(node_id)

    def impose(self, pairs: Iterable[Pair], manner: Manner) -> int:
        raise LinksNotCut

    def lift(self, number: int) -> None:
        """Nothing was imposed."""

    def cut(self, from_id: int, to_ids: Iterable[int]) -> None:
        raise LinksNotCut

    def heal(self) -> None:
        """There is nothing that could be cut."""

    def close(self) -> None:
        """There is nothing that was made."""


class Switched:
    """A namespace for each node; the clients of this process have a device in the namespace where it runs."""

    can_cut = True

    def __init__(self, seed: str = "1") -> None:
        number = next(_numbers)
        self._name = f"pst{os.getpid() % 100_000}{chr(ord('a') + number % 26)}"
        self._net = f"10.{200 + os.getpid() % 50}.{(os.getpid() // 50 + number) % 250}"
        self._nodes: set[int] = set()
        self._troubles: set[int] = set()
        self._order = count(1)
        ids = (*range(1, HOSTS_MAX + 1), CLIENTS)
        command = [sys.executable, "-m", "tests.faults.cluster.switch", seed, *(f"{self._device(i)}={i}" for i in ids)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self._hear("ready")
            self._set_up(CLIENTS)
        except BaseException:
            self.close()
            raise

    def _set_up(self, host_id: int, *inside: str) -> None:
        """Gives a host's device its addresses; `inside` leads into a namespace, where it is called as outside."""
        device = self._device(host_id)
        _ip(*inside, "link", "set", device, "address", mac(host_id), "mtu", str(_MTU), "up")
        _ip(*inside, "addr", "add", f"{self._address(host_id)}/24", "dev", device)

    def host(self, node_id: int) -> Host:
        assert node_id <= HOSTS_MAX, f"the switch has {HOSTS_MAX} ports for nodes"
        space = self._space(node_id)
        self._nodes.add(node_id)
        note_command("ip", "netns", "del", space)
        _ip("netns", "add", space)
        _ip("link", "set", self._device(node_id), "netns", space)
        self._set_up(node_id, "-n", space)
        _ip("-n", space, "link", "set", "lo", "up")
        # Not `ip netns exec`: it copies all mounts for the process, which would keep disks alive that were unmounted.
        return Host(space, self._address(node_id), 9092, 9093, ("nsenter", f"--net=/run/netns/{space}"))

    # -- links

    def impose(self, pairs: Iterable[Pair], manner: Manner) -> int:
        """A trouble on these directed links, from now until it is lifted by its number."""
        number = next(self._order)
        self._troubles.add(number)
        self._tell({"number": number, "pairs": [*pairs], "manner": [*manner]})
        return number

    def lift(self, number: int) -> None:
        self._troubles.discard(number)
        self._tell({"number": number})

    def cut(self, from_id: int, to_ids: Iterable[int]) -> None:
        """What `from_id` sends to these arrives nowhere, without a word; the other way stays as it is."""
        self.impose([(from_id, to_id) for to_id in to_ids if to_id != from_id], CUT)

    def heal(self) -> None:
        for number in sorted(self._troubles):
            self.lift(number)

    def _tell(self, order: dict[str, object]) -> None:
        """Returns when the switch has done it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        self._hear("done")

    def _hear(self, word: str) -> None:
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode().strip()
        assert said == word, f"the switch said {said!r} and not {word!r}; it has ended with {self._process.poll()}"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        for node_id in self._nodes:
            _ip("netns", "del", self._space(node_id), check=False)

    def _space(self, node_id: int) -> str:
        return f"{self._name}-{node_id}"

    def _device(self, host_id: int) -> str:
        return f"{self._name}{host_id}"

    def _address(self, node_id: int) -> str:
        return f"{self._net}.{node_id}"


Network = Loopback | Switched


def new_network(seed: str = "1") -> Network:
    return Switched(seed) if namespaces_allowed() else Loopback()


def between(some: Sequence[int], others: Sequence[int]) -> list[Pair]:
    """Every link from one side to the other, both ways."""
    return [pair for one, other in product(some, others) if one != other for pair in ((one, other), (other, one))]


def separate(network: Network, some: Sequence[int], others: Sequence[int]) -> None:
    """No word passes between the two sides."""
    network.impose(between(some, others), CUT)
