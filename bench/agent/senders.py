"""Sends events over the network: `python -m bench.agent.senders KIND HOST:PORT SECONDS RATE CONNECTIONS`.

KIND is udp, tcp, ndjson or json. RATE is events a second, 0 for as fast as they are taken. Prints how many were sent:
over TCP those that the kernel took, over HTTP those that were answered with 2xx; what was refused is sent again.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time

from bench.agent.lines import make_block

EVENT_BYTES = 200
EVENTS_A_POST = 1_000
WRITE_EVENTS = 300


def syslog_messages(count: int = 3_000) -> list[bytes]:
    """RFC 5424, each of 200 bytes."""
    block = make_block("raw", 140, count * 140)
    head = b"<34>1 2026-11-16T10:14:15.003Z web-1 shop 4711 - - "
    return [(head + block[at : at + 139]).ljust(EVENT_BYTES)[:EVENT_BYTES] for at in range(0, len(block), 140)]


def send_udp(address: tuple[str, int], seconds: float, rate: float) -> int:
    messages = syslog_messages()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(address)
        began, sent = time.perf_counter(), 0
        while (elapsed_s := time.perf_counter() - began) < seconds:
            goal = int(rate * elapsed_s) if rate else sent + 100
            for number in range(sent, goal):
                sender.send(messages[number % len(messages)])
            sent = goal
            if rate:
                time.sleep(0.002)
    return sent


def send_tcp(address: tuple[str, int], seconds: float, connections: int) -> int:
    """Octet-counted frames (RFC 6587), a few hundred a write, over several connections."""
    frame = b"".join(b"%d %b" % (len(message), message) for message in syslog_messages(WRITE_EVENTS))
    sockets = [socket.create_connection(address) for _ in range(connections)]
    left = {each: memoryview(frame) for each in sockets}
    sent = 0
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            each.setblocking(False)
            selector.register(each, selectors.EVENT_WRITE, each)
        began = time.perf_counter()
        while left:
            over = time.perf_counter() - began > seconds
            for key, _ in selector.select(1):
                each = key.data
                left[each] = left[each][each.send(left[each]) :]
                if not left[each]:
                    sent += WRITE_EVENTS
                    left[each] = memoryview(frame)
                    if over:
                        # Whole frames only; what was begun is finished first.
                        del left[each]
                        selector.unregister(each)
    for each in sockets:
        each.close()
    return sent


def send_http(address: tuple[str, int], seconds: float, connections: int, events: int) -> int:
    """POSTs over connections that stay open, one after the other on each; 429 is answered by trying again."""
    lines = make_block("json", EVENT_BYTES, events * EVENT_BYTES)
    kind = b"application/x-ndjson" if events > 1 else b"application/json"
    body = lines if events > 1 else lines[:-1]
    request = b"POST / HTTP/1.1\r\nHost: bench\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
    sockets = [socket.create_connection(address) for _ in range(connections)]
    taken = 0
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ, each)
            each.sendall(request + body)
        began, out = time.perf_counter(), len(sockets)
        while out:
            for key, _ in selector.select(5):
                each = key.data
                reply = each.recv(65_536)
                if not reply:
                    raise ConnectionError("the agent closed a connection")
                if reply.startswith(b"HTTP/1.1 2"):
                    taken += events
                elif not reply.startswith(b"HTTP/1.1 429"):
                    raise AssertionError(reply[:200].decode(errors="replace"))
                if time.perf_counter() - began < seconds:
                    each.sendall(request + body)
                else:
                    out -= 1
                    selector.unregister(each)
    for each in sockets:
        each.close()
    return taken


def main() -> None:
    kind, place, seconds, rate, connections = sys.argv[1:]
    host, _, port = place.rpartition(":")
    address = (host, int(port))
    if kind == "udp":
        print(send_udp(address, float(seconds), float(rate)))
    elif kind == "tcp":
        print(send_tcp(address, float(seconds), int(connections)))
    else:
        print(send_http(address, float(seconds), int(connections), EVENTS_A_POST if kind == "ndjson" else 1))


if __name__ == "__main__":
    main()
