"""Asks two brokers the same, request by request, and keeps what differs."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.protocol.registry import APIS, Api
from penstock.server.reception.dispatch import SERVED, Dispatch
from tests.compat.answers.comparing import Difference
from tests.compat.answers.deviations import DEVIATIONS
from tests.compat.answers.drawing import Drawing
from tests.compat.answers.duo import Duo, Exchange
from tests.compat.answers.learning import learn
from tests.compat.answers.settings import CHANGES, READS
from tests.compat.answers.world import World
from tests.compat.node import Node

AGAIN_WITHIN_S = 2.0
"""How much later one broker may know what the other knows already."""
TOLD_MAX = 30
SHOWN_CHARACTERS = 2_000


@dataclass
class Report:
    """What came out of many requests."""

    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[int, Exchange, Difference]] = field(default_factory=list)
    """The number of the request, what was said, and where the answers differ."""

    def __str__(self) -> str:
        kinds: dict[tuple[str, str, str, str], str] = {}
        for number, exchange, difference in self.unexplained:
            kind = (exchange.api, difference.path, repr(difference.ours)[:60], repr(difference.theirs)[:60])
            kinds.setdefault(kind, _told(number, exchange, difference))
        shown = "\n\n".join(list(kinds.values())[:TOLD_MAX])
        return f"{len(self.unexplained)} differences of {len(kinds)} kinds that no limit names\n\n{shown}"


def _told(number: int, exchange: Exchange, difference: Difference) -> str:
    lines = (
        f"request {number}, {exchange.api} v{exchange.version}: {difference.path}",
        f"  ours   {difference.ours!r}",
        f"  theirs {difference.theirs!r}",
        f"  request      {exchange.request!r}",
        f"  our answer   {exchange.ours!r}",
        f"  their answer {exchange.theirs!r}",
    )
    return "\n".join(line[:SHOWN_CHARACTERS] for line in lines)


def routes(served: Sequence[str] = SERVED) -> list[tuple[Api, int]]:
    """Every API and version that we tell clients we serve, and do; of a broker unless others are named."""
    return [
        (APIS[key], version)
        for key, first, last in Dispatch(served).advertised()
        for version in range(max(first, APIS[key].min), last + 1)
    ]


OF_COORDINATORS = frozenset(
    {
        "WriteTxnMarkers", "TxnOffsetCommit", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
        "DescribeTransactions", "ListTransactions",
    }
)  # fmt: skip
"""What a coordinator of transactions sends, or has to know of first; not put to both brokers."""


async def compare(ours: Node, theirs: Node, *, seed: int, requests: int) -> Report:
    """Asks both so many random requests."""
    world, report = World(), Report()
    known = [(api, version) for api, version in routes() if api.name not in OF_COORDINATORS]
    duo = Duo(ours, theirs, world)
    try:
        await duo.seed()
        drawing = Drawing(seed, world)
        for number in range(requests):
            api, version = drawing.random.choice(known)
            exchange, left = await _asked(duo, api.name, drawing.request(api, version), version, report)
            report.asked[api.name, version] += 1
            report.unexplained += [(number, exchange, difference) for difference in left]
            if not isinstance(exchange.ours, str):
                learn(world, api.name, exchange.request, exchange.ours)
            if api.name in CHANGES:
                await duo.settle()
    except Exception as failure:
        failure.add_note(str(report))
        raise
    finally:
        duo.close()
    return report


async def _asked(
    duo: Duo, api: str, request: object, version: int, report: Report
) -> tuple[Exchange, list[Difference]]:
    """One exchange and its differences that nothing excuses; a question that changes nothing is put again meanwhile."""
    deadline = time.monotonic() + (AGAIN_WITHIN_S if api in READS else 0)
    while True:
        exchange = await duo.ask(api, request, version)
        left = []
        for difference in duo.differences(exchange):
            excuse = next((each.name for each in DEVIATIONS if each.applies(exchange, difference)), None)
            if excuse is None:
                left.append(difference)
            else:
                report.excused[excuse] += 1
        if not left or time.monotonic() >= deadline:
            return exchange, left
        await asyncio.sleep(0.02)
