"""A process of its own that is the only member of many groups: `python -m bench.scale.members ADDRESS COUNT`.

It joins them one after the other, says `ready`, and then sends each member's heartbeat every three seconds, evenly
spread, until its standard input ends. In the measuring process it would take the time that it measures.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.group_load import classic_heartbeat, find_coordinator
from tests.compat import wire

HEARTBEAT_S = 3.0
CONNECTIONS = 10


@contextmanager
def members(bootstrap: str, count: int) -> Iterator[None]:
    """`count` groups of one member each while the block runs."""
    if not count:
        yield
        return
    command = [sys.executable, "-m", "bench.scale.members", bootstrap, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None, "it was asked for"
        assert process.stdout is not None, "it was asked for"
        try:
            if process.stdout.readline() != "ready\n":
                raise AssertionError("the members did not come")
            yield
        finally:
            process.stdin.close()
            process.wait(30)


def main() -> None:
    bootstrap, count = sys.argv[1], int(sys.argv[2])
    connections = [wire.connect(bootstrap) for _ in range(min(CONNECTIONS, count))]
    find_coordinator(connections[0], "member-0")
    beats = []
    for number in range(count):
        connection = connections[number % len(connections)]
        beats.append((connection, classic_heartbeat(connection, f"member-{number}")))
    print("ready", flush=True)
    pause_s = HEARTBEAT_S / count
    due = time.monotonic()
    while True:
        for connection, frame in beats:
            due += pause_s
            if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
                return
            if (error := connection.call(frame).one("h")) != 0:
                raise SystemExit(f"a heartbeat was refused with error {error}")


if __name__ == "__main__":
    main()
