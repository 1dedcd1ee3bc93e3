"""Connections that do not leave the machine are not paced.

Where the system's congestion control is BBR, the kernel spreads a reply over time, with a timer for each piece, to be
gentle to a link. Between two processes on one machine there is no link, and the timers made a large fetch about twice
as dear.
"""

from __future__ import annotations

import asyncio
import socket

# The algorithms that pace by themselves, by the beginning of the name: bbr, bbr2, bbr3.
PACING = (b"bbr",)
# Every kernel has this one, it never paces, and any user may choose it.
UNPACED = b"reno"
_NAME_BYTES_MAX = 16


def unpace(transport: asyncio.Transport) -> None:
    """Takes the pacing off a connection whose peer is on this machine; where that cannot be done, all stays."""
    option = getattr(socket, "TCP_CONGESTION", None)
    plug = transport.get_extra_info("socket")
    if option is None or plug is None:
        return
    if not is_here(transport.get_extra_info("peername"), transport.get_extra_info("sockname")):
        return
    try:
        if plug.getsockopt(socket.IPPROTO_TCP, option, _NAME_BYTES_MAX).startswith(PACING):
            plug.setsockopt(socket.IPPROTO_TCP, option, UNPACED)
    except OSError:  # a peer that is gone already, or a system that lets nobody choose
        return


def is_here(peer: object, mine: object) -> bool:
    """Whether the two ends of a connection, as a socket tells them, are on one machine.

    Either over the loopback, or because both have the same address: a machine that dials its own name.
    """
    if not isinstance(peer, tuple) or not peer:
        return False
    host = str(peer[0])
    if host.startswith(("127.", "::ffff:127.")) or host == "::1":
        return True
    return isinstance(mine, tuple) and mine[:1] == peer[:1]
