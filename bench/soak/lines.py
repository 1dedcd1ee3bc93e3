"""A party's side of its pipes: orders come in as lines of JSON, a report a second goes out."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

ERRORS_MAX = 20
"""So many are told in words; the rest are counted."""


class Orders:
    """What the stage wants: a rate, and the end. Fed by a thread, read by anybody."""

    def __init__(self) -> None:
        self.bytes_per_s = 0.0
        self.ending = threading.Event()
        self.totals: dict[str, int] = {}
        """How many records each topic has at the end, told with the end."""
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            self.bytes_per_s = order.get("bytes_per_s", self.bytes_per_s)
            if order.get("end"):
                self.totals = order.get("totals", {})
                self.ending.set()
        self.ending.set()


class Errors(logging.Handler):
    """Everything that went wrong here, warnings of the library's own log too."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0
        self._words: list[str] = []
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.add(f"{record.name}: {record.getMessage()}")

    def add(self, words: str) -> None:
        self.count += 1
        if self.count <= ERRORS_MAX:
            self._words.append(words)

    def told(self) -> list[str]:
        """What has not been told yet."""
        words, self._words = self._words, []
        return words


def tell(report: Mapping[str, Any], errors: Errors) -> None:
    """One line for the stage."""
    line = {"at": time.monotonic(), "error_count": errors.count, "errors": errors.told(), **report}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
