"""The agent that one writes oneself: `python -m bench.agent.script BOOTSTRAP TOPIC FILE ...`.

Reads files from their beginning to their end and goes on looking for more; each line is one `produce` of
confluent-kafka with the headers that the agent adds. It remembers nothing: started again, it begins anew.
"""

from __future__ import annotations

import os
import socket
import sys
import time

from confluent_kafka import Producer

READ_BYTES = 1 << 20


def main() -> None:
    bootstrap, topic, *paths = sys.argv[1:]
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "lz4",
            "linger.ms": 20,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 65_536,
        }
    )
    host = socket.gethostname().encode()
    files: list[tuple[int, list[tuple[str, str | bytes | None]]]] = [
        (os.open(path, os.O_RDONLY), [("host", host), ("path", path)]) for path in paths
    ]
    rests = [b""] * len(files)
    while True:
        found = False
        for index, (number, headers) in enumerate(files):
            data = rests[index] + os.read(number, READ_BYTES)
            *lines, rests[index] = data.split(b"\n")
            found = found or bool(lines)
            for line in lines:
                while True:
                    try:
                        producer.produce(topic, line, headers=headers)
                        break
                    except BufferError:
                        producer.poll(0.01)
            producer.poll(0)
        if not found:
            producer.poll(0)
            time.sleep(0.05)


if __name__ == "__main__":
    main()
