"""A worker as a process that can be killed, frozen and cut off: `python -m tests.faults.transactions.worker PLAN`.

It says what it does, a line at a time, before it does it:

| line | |
|---|---|
| `begin N` | its transaction N begins |
| `send N PARTITION ORIGIN VALUE` | a record is about to be sent; ORIGIN is the offset in the source, or -1 |
| `commit N` | it is about to ask for a commit |
| `committed N`, `aborted N` | it was told so |
| `idle` | there was nothing to copy |
| `ended WORDS` | its producer or consumer is over for good; somebody else is to be started |

Every fifth transaction is aborted when all of it is sent. SIGTERM ends it between two transactions.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time

from tests.faults.transactions.libraries import LIBRARIES, Copier, Got, Plan, ends_of

ABORT_EVERY = 5
FED = 4
"""How many records a transaction has that are made up."""
OVER = 3
"""The exit code of a worker whose client is over."""


class OnPurpose(Exception):
    """Nothing went wrong; this one is to be aborted."""


class Worker:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.copier: Copier = LIBRARIES[plan.library](plan)
        self.stopping = threading.Event()
        self._number = 0

    def say(self, line: str) -> None:
        # Unbuffered, and therefore safe from kill -9 as soon as it is written.
        sys.stdout.write(f"{time.time():.6f} {line}\n")
        sys.stdout.flush()

    def run(self) -> None:
        self.copier.start()
        self.say("ready")
        while not self.stopping.is_set():
            if self.plan.source:
                records = self.copier.poll()
            else:
                records = [Got(each % self.plan.partitions, -1, b"") for each in range(FED)]
            if records:
                self._transact(records)
                self.copier.rest(self.plan.rest_s)
            else:
                self.say("idle")
        self.copier.close()

    def _transact(self, records: list[Got]) -> None:
        self._number += 1
        number, copier = self._number, self.copier
        self.say(f"begin {number}")
        try:
            copier.begin()
            for index, each in enumerate(records):
                value = self._value(number, index, each)
                partition = (each.partition + number) % self.plan.partitions if each.offset < 0 else each.partition
                self.say(f"send {number} {partition} {each.offset} {value}")
                copier.send(partition, value.encode())
            if self.plan.source:
                copier.send_offsets(ends_of(records))
            if number % ABORT_EVERY == 0:
                raise OnPurpose
            self.say(f"commit {number}")
            copier.commit()
            self.say(f"committed {number}")
        except Exception as failure:
            self._undo(failure)

    def _value(self, number: int, index: int, record: Got) -> str:
        """Each attempt to write something is another value."""
        mark = f"{self.plan.name}.{number}"
        return f"{record.value.decode()}>{mark}" if self.plan.source else f"{mark}.{index}"

    def _undo(self, failure: Exception) -> None:
        copier = self.copier
        if not isinstance(failure, OnPurpose) and not copier.may_abort(failure):
            raise failure
        try:
            copier.abort()
        except Exception as trouble:
            raise trouble from failure
        self.say(f"aborted {self._number}")
        if self.plan.source:
            copier.rewind()


def main() -> int:
    plan = Plan(**json.loads(sys.argv[1]))
    # Where it stands, for whoever wonders.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    worker = Worker(plan)
    signal.signal(signal.SIGTERM, lambda *_: worker.stopping.set())
    try:
        worker.run()
    except Exception as failure:
        cause = f", after {failure.__cause__!r}" if failure.__cause__ is not None else ""
        worker.say(f"ended {failure!r}{cause}".replace("\n", " "))
        return OVER
    return 0


if __name__ == "__main__":
    # Whatever a library leaves running must not keep a process alive that has said its last word.
    code = main()
    sys.stdout.flush()
    os._exit(code)
