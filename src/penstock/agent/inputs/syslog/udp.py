"""Datagrams: read in bursts, and those that the kernel had to drop counted."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from typing import Final

from penstock.agent.listening.streams import bound_socket

BURST_DATAGRAMS_MAX: Final = 512
BURST_BYTES_MAX: Final = 1 << 20
_LAST_BURSTS_MAX: Final = 64
# Linux; the socket module does not name them.
_SO_RCVBUFFORCE: Final = 33
_SO_MEMINFO: Final = 55
_MEMINFO: Final = struct.Struct("=9I")
_DROPS_AT: Final = 8

Take = Callable[[dict[str, list[bytes]]], bool]


class DatagramReader:
    """Calls `take` with the datagrams of each wake-up, by sender. When it says False, nothing is read until `resume`.

    Meanwhile the kernel's buffer holds what comes, and counts what it drops.
    """

    def __init__(self, take: Take, datagram_bytes_max: int, receive_buffer_bytes: int) -> None:
        self._take, self._datagram_bytes_max = take, datagram_bytes_max
        self._receive_buffer_bytes = receive_buffer_bytes
        self._socket: socket.socket | None = None
        self._reading = False
        self._drops_seen = 0
        self._dropped = 0

    async def start(self, host: str, port: int) -> int:
        made = await bound_socket(host, port, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, self._receive_buffer_bytes)
        except OSError:
            # Without CAP_NET_ADMIN the kernel's own bound (net.core.rmem_max) holds.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        self._socket = made
        self.resume()
        return int(made.getsockname()[1])

    @property
    def buffer_bytes(self) -> int:
        """What the kernel granted. It says twice what it was asked for."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2 if self._socket is not None else 0

    def resume(self) -> None:
        if self._socket is not None and not self._reading:
            self._reading = True
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._readable)

    def pause(self) -> None:
        if self._socket is not None and self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(self._socket.fileno())

    def close(self) -> None:
        """Takes what the kernel still holds, as far as there is room, counts the rest, then goes."""
        if self._socket is None:
            return
        self.pause()
        # A flood must not keep a stop from ending.
        for _ in range(_LAST_BURSTS_MAX):
            if not self._burst():
                break
        self._dropped = self.dropped + self._count_rest(self._socket)
        self._socket.close()
        self._socket = None

    @property
    def dropped(self) -> int:
        """Datagrams that came and found the kernel's buffer full, or were still in it at the end."""
        if self._socket is not None:
            drops = _drops(self._socket)
            # The kernel's counter has 32 bits.
            self._dropped += (drops - self._drops_seen) & 0xFFFF_FFFF
            self._drops_seen = drops
        return self._dropped

    def _count_rest(self, bound: socket.socket) -> int:
        rest = 0
        try:
            while rest < _LAST_BURSTS_MAX * BURST_DATAGRAMS_MAX:
                bound.recv(1)
                rest += 1
        except OSError:
            pass
        return rest

    def _readable(self) -> None:
        self._burst()

    def _burst(self) -> bool:
        """One wake-up; whether there may be more and somebody wants it."""
        assert self._socket is not None
        receive, size = self._socket.recvfrom, self._datagram_bytes_max + 1
        by_peer: dict[str, list[bytes]] = {}
        count = total_bytes = 0
        try:
            while count < BURST_DATAGRAMS_MAX and total_bytes < BURST_BYTES_MAX:
                data, address = receive(size)
                count += 1
                total_bytes += len(data)
                by_peer.setdefault(address[0], []).append(data)
        except BlockingIOError:
            pass
        except OSError:
            # An error of an earlier datagram (ICMP), told to whoever reads next; the socket is as good as before.
            count += 1
        if not by_peer:
            return False
        if not self._take(by_peer):
            self.pause()
            return False
        return count >= BURST_DATAGRAMS_MAX or total_bytes >= BURST_BYTES_MAX


def _drops(bound: socket.socket) -> int:
    try:
        return int(_MEMINFO.unpack(bound.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))[_DROPS_AT])
    except (OSError, struct.error):
        return _drops_of_inode(os.fstat(bound.fileno()).st_ino)


def _drops_of_inode(inode: int) -> int:
    """The last column of the kernel's table, for kernels that do not answer the question above."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            with open(table) as lines:
                for line in lines:
                    columns = line.split()
                    if len(columns) > 12 and columns[9] == str(inode):
                        return int(columns[12])
        except OSError:
            continue
    return 0
