"""Serves a `LargeWorld` in a process of its own: `python -m tests.console.large.serving` prints its port, and for each
line that it is told a line of JSON: how many requests of each API it has answered.

All brokers are one socket; which of them is meant is told by the address that a connection was made to. It counts the
time that its answers take, as broker CPU is not what is measured here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from typing import Final

from penstock.protocol.codec import decode
from penstock.protocol.frame import encode_response_parts, read_request_header
from penstock.protocol.registry import APIS
from tests.console.large.world import BROKERS, LargeWorld, host_of

_KEPT_MAX: Final = 50
NODES: Final = {host_of(node): node for node in range(BROKERS)}


async def serve() -> None:
    worlds: list[LargeWorld] = []
    # What does not change is encoded once: it is the console's CPU that counts, not this one's.
    kept: dict[tuple[int, int, bytes], list[bytes]] = {}
    answered: Counter[int] = Counter()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        node = NODES.get(writer.get_extra_info("sockname")[0], 0)
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                header, body = read_request_header(frame)
                key, version = header.request_api_key, header.request_api_version
                answered[key] += 1
                asked = (key, version, frame[body:]) if key in (3, 32) else None
                parts = kept.get(asked) if asked is not None else None
                if parts is None:
                    request, _ = decode(APIS[key].request(), version, frame, body)
                    answer = worlds[0].answer(node, key, request, time.time())
                    whole = b"".join(map(bytes, encode_response_parts(0, answer, key, version)))
                    parts = [whole]
                    if asked is not None and len(kept) < _KEPT_MAX:
                        kept[asked] = parts
                whole = parts[0]
                writer.write(whole[:4] + header.correlation_id.to_bytes(4, "big") + whole[8:])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "0.0.0.0", 0, backlog=1_024)
    port = server.sockets[0].getsockname()[1]
    worlds.append(LargeWorld(port, time.time()))
    print(port, flush=True)
    # Whoever started it ends it by closing its standard input.
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(answered), flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
