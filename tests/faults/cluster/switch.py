"""A switch of our own: a process with one TAP device a host, that forwards frames as `links.py` says.

The kernel's netem is not everywhere, and a proxy of TCP connections can only guess what a lost or late packet does to
one; here real frames are really lost, late and out of order, and the kernels at both ends make of it what they do. ARP
always passes: a host that cannot be reached is silent, nobody says that there is no way to it.

Started as `python -m tests.faults.cluster.switch SEED NAME=ID…`; makes the devices, says `ready`, and then obeys one
line of JSON after the other from its input, answering each with `done`. The devices go when the process does.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time
from typing import Any

from tests.faults.cluster.links import Links, Manner

MAC_PREFIX = b"\x02\x00\x00\x00\x00"
_TUNSETIFF = 0x400454CA
_TAP_WITHOUT_HEADER = 0x0002 | 0x1000
_ARP, _IP = b"\x08\x06", b"\x08\x00"
_FRAME_BYTES_MAX = 65_535
_FRAMES_A_TURN = 64
# What waits is bounded; a link that holds more drops, as any queue does.
_WAITING_MAX = 20_000


def mac(host_id: int) -> str:
    return ":".join(f"{byte:02x}" for byte in (*MAC_PREFIX, host_id))


def _tap(name: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITHOUT_HEADER))
    return descriptor


class Switch:
    def __init__(self, links: Links, ports: dict[int, int]) -> None:
        self.links = links
        self._ports = ports
        self._ids = {descriptor: host_id for host_id, descriptor in ports.items()}
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def run(self) -> None:
        poll = select.epoll()
        for descriptor in self._ids:
            poll.register(descriptor, select.EPOLLIN)
        orders = sys.stdin.fileno()
        poll.register(orders, select.EPOLLIN)
        buffered = b""
        while True:
            for descriptor, _ in poll.poll(self._pause_s()):
                if descriptor != orders:
                    self._take(descriptor)
                    continue
                piece = os.read(orders, 65_536)
                if not piece:
                    return
                *lines, buffered = (buffered + piece).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
            self._deliver(time.monotonic())

    def _pause_s(self) -> float:
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else 1.0

    def _obey(self, order: dict[str, Any]) -> None:
        if "pairs" in order:
            self.links.impose(order["number"], [(a, b) for a, b in order["pairs"]], Manner(*order["manner"]))
        else:
            self.links.lift(order["number"])
        os.write(sys.stdout.fileno(), b"done\n")

    def _take(self, descriptor: int) -> None:
        from_id, now_s = self._ids[descriptor], time.monotonic()
        for _ in range(_FRAMES_A_TURN):
            try:
                frame = os.read(descriptor, _FRAME_BYTES_MAX)
            except BlockingIOError:
                return
            kind = frame[12:14]
            if kind == _ARP:
                for to_id in self._ports if frame[0] & 1 else (frame[5],):
                    if to_id != from_id:
                        self._send(to_id, frame)
            elif kind == _IP and frame[:5] == MAC_PREFIX:
                self._pass((from_id, frame[5]), frame, now_s)

    def _pass(self, pair: tuple[int, int], frame: bytes, now_s: float) -> None:
        due_s = self.links.arrival(pair, len(frame), now_s)
        if due_s is None:
            return
        if due_s <= now_s:
            self._send(pair[1], frame)
        elif len(self._waiting) < _WAITING_MAX:
            self._count += 1
            heapq.heappush(self._waiting, (due_s, self._count, pair[1], frame))

    def _deliver(self, now_s: float) -> None:
        while self._waiting and self._waiting[0][0] <= now_s:
            _, _, to_id, frame = heapq.heappop(self._waiting)
            self._send(to_id, frame)

    def _send(self, to_id: int, frame: bytes) -> None:
        port = self._ports.get(to_id)
        if port is None:
            return
        try:
            os.write(port, frame)
        except OSError:
            return  # a device that is not up, or has no room: a frame is lost, as on any wire


def main() -> None:
    seed, *named = sys.argv[1:]
    ports = {}
    for pair in named:
        name, _, host_id = pair.rpartition("=")
        ports[int(host_id)] = _tap(name)
    os.write(sys.stdout.fileno(), b"ready\n")
    Switch(Links(random.Random(seed)), ports).run()


if __name__ == "__main__":
    main()
