"""The agent's log: numbered lines in a file that is rotated all the time, and a reader of the topic they arrive in."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from penstock.blocking import Consumer
from penstock.client.errors import ClientError
from penstock.demo.rotating import RotatingLog

TOPIC = "lines"
RATE_PER_S = 50.0
ROTATE_S = 3.0
PAUSE_S = 0.1


class LineWriter:
    """Writes until `stop`; `written` lines are in the file or in what rotation made of it."""

    def __init__(self, path: Path) -> None:
        self.written = 0
        self.log = RotatingLog(path)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lines")
        self._thread.start()

    def _run(self) -> None:
        began = rotated = time.monotonic()
        while not self._stopping.wait(PAUSE_S):
            now = time.monotonic()
            due = int((now - began) * RATE_PER_S)
            self.log.write(b"".join(b'{"n": %d}\n' % number for number in range(self.written, due)))
            self.written = max(due, self.written)
            if now - rotated >= ROTATE_S:
                self.log.rotate()
                rotated = now

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.log.close()


class LineReader:
    """Reads the topic from its start; lines come in order, each at least once."""

    def __init__(self, bootstrap: str) -> None:
        self.next = 0
        self.again = 0
        self.wrong: list[str] = []
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader of lines")
        self._thread.start()

    def _run(self) -> None:
        with Consumer(bootstrap_servers=self._bootstrap, offset_reset="earliest") as consumer:
            consumer.assign([(TOPIC, 0)])
            while not self._stopping.is_set():
                try:
                    for record in consumer.poll(timeout_ms=200):
                        self._take(int((record.value or b"")[6:-1]), record.offset)
                except ClientError as failure:
                    if not failure.retriable:
                        self.wrong.append(repr(failure))
                        return

    def _take(self, number: int, offset: int) -> None:
        if number > self.next:
            self.wrong.append(f"lines {self.next} to {number - 1} are not before offset {offset}")
        self.again += number < self.next
        self.next = max(self.next, number + 1)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
