"""Foreign clients that come for one topic and go: `python -m tests.life.strangers BOOTSTRAP RATE`.

Each visit is of another library: it writes a topic that was made for it, reads it as the only member of a new group and
leaves. A library that gives up because a node was killed comes again; what it was acknowledged it must find.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import count

from bench.soak.lines import Errors, Orders, tell
from penstock.blocking import Admin
from tests.clients.interface import ProducerSettings, Refused, Sent
from tests.clients.libraries import CLIENTS
from tests.clients.members import MEMBERS
from tests.life.repeated import perhaps_done_before
from tests.life.settings import WEEK_MS
from tests.patience import wait_for

RECORDS = 20
ATTEMPTS = 5
READ_S = 60.0
LIBRARIES = tuple((member, member.split()[0]) for member in MEMBERS)
"""The kinds of members, each with its library."""


class Visits:
    def __init__(self, bootstrap: str, errors: Errors) -> None:
        self.bootstrap, self.errors = bootstrap, errors
        self.acts: Counter[str] = Counter()

    def visit(self, number: int) -> None:
        kind, library = LIBRARIES[number % len(LIBRARIES)]
        name = f"visited-{number}"
        values = {f"{each} of {name}".encode() for each in range(RECORDS)}
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            with perhaps_done_before(self.acts):
                admin.create_topic(name, 1, 3, {"retention.ms": str(2 * WEEK_MS)})
            self._again(kind, lambda: self._write(library, name, values))
            self._again(kind, lambda: self._read(kind, name, values))
            with perhaps_done_before(self.acts):
                admin.delete_topic(name)
        self.acts[f"visits of {kind}"] += 1

    def _again(self, kind: str, do: Callable[[], None]) -> None:
        for attempt in range(ATTEMPTS):
            try:
                do()
                return
            except Exception as failure:
                if attempt == ATTEMPTS - 1:
                    self.errors.add(f"{kind}: {failure!r}")
                else:
                    self.acts["visits tried again"] += 1

    def _write(self, library: str, name: str, values: set[bytes]) -> None:
        with CLIENTS[library](self.bootstrap).producer(ProducerSettings(idempotent=True)) as producer:
            try:
                producer.send(name, [Sent(value, key=value) for value in sorted(values)])
            except Refused as refusal:
                raise ConnectionError(str(refusal)) from refusal

    def _read(self, kind: str, name: str, values: set[bytes]) -> None:
        left = set(values)
        member = MEMBERS[kind](
            self.bootstrap, f"of-{name}-{time.monotonic_ns()}", [name], kind, lambda _member, value: left.discard(value)
        )
        try:
            wait_for(f"{kind} to read {name}", lambda: not left, timeout_s=READ_S)
        finally:
            member.leave()


def main() -> None:
    bootstrap, rate_per_s = sys.argv[1], float(sys.argv[2])
    for library in ("kafka", "aiokafka", "penstock.client"):
        # They tell of every broken link.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    orders, errors = Orders(), Errors()
    visits = Visits(bootstrap, errors)
    for number in count():
        if orders.ending.is_set():
            break
        began = time.monotonic()
        try:
            visits.visit(number)
        except Exception as failure:
            errors.add(f"visit {number}: {failure!r}")
        tell({"acts": dict(visits.acts)}, errors)
        orders.ending.wait(max(0.0, began + 1 / rate_per_s - time.monotonic()))
    tell({"acts": dict(visits.acts), "done": True}, errors)


if __name__ == "__main__":
    main()
