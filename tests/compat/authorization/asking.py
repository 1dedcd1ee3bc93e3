"""Puts questions to both brokers as everybody, and keeps what differs."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from penstock.server.reception.dispatch import CONTROLLER_SERVED, SERVED
from tests.compat.answers.asking import routes
from tests.compat.answers.comparing import Difference
from tests.compat.answers.duo import Exchange
from tests.compat.answers.settings import READS
from tests.compat.authorization.cast import ADMIN, ANONYMOUS, EVERYTHING, NOTHING
from tests.compat.authorization.deviations import excuse_of
from tests.compat.authorization.pair import Pair
from tests.compat.authorization.questions import QUESTIONS, Question
from tests.compat.authorization.state import State

AGAIN_WITHIN_S = 2.0
"""How much later one broker may know what the other knows already."""
TOLD_MAX = 12
SHOWN_CHARACTERS = 1_500
QUIET = READS | {"DescribeDelegationToken", "DescribeClientQuotas", "DescribeUserScramCredentials"}
"""What may be asked again."""
NOT_OF_CONTROLLERS = frozenset({"ApiVersions", "DescribeUserScramCredentials"})
"""Is not asked where controllers listen: which APIs there are differs, and Kafka's controller fails inside."""
NO_READERS = frozenset({NOTHING})
"""Who asks controllers for records. Those who may have them get each broker's own, the metadata log's."""
EXTREMES = (ADMIN, EVERYTHING, NOTHING, ANONYMOUS)


class Case(NamedTuple):
    """`controller`: asked where controllers listen."""

    question: Question
    version: int
    user: str
    controller: bool = False


@dataclass
class Report:
    """What came out of many questions."""

    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[str, Exchange, Difference]] = field(default_factory=list)
    """Who asked, what was said, and where the answers differ."""

    @property
    def count(self) -> int:
        return self.asked.total()

    def __str__(self) -> str:
        kinds: dict[tuple[str, str, str, str], list[str]] = {}
        for user, exchange, difference in self.unexplained:
            kind = (exchange.api, difference.path, repr(difference.ours)[:40], repr(difference.theirs)[:40])
            kinds.setdefault(kind, []).append(_told(user, exchange, difference))
        shown = "\n\n".join(f"{len(each)} times: {each[0]}" for each in list(kinds.values())[:TOLD_MAX])
        return (
            f"{len(self.unexplained)} differences of {len(kinds)} kinds that no limit names, "
            f"in {self.count} questions\n\n{shown}"
        )


def _told(user: str, exchange: Exchange, difference: Difference) -> str:
    lines = (
        f"{user} asks {exchange.api} v{exchange.version}: {difference.path} of {difference.at}",
        f"  ours   {difference.ours!r}",
        f"  theirs {difference.theirs!r}",
        f"  request      {exchange.request!r}",
        f"  our answer   {exchange.ours!r}",
        f"  their answer {exchange.theirs!r}",
    )
    return "\n".join(line[:SHOWN_CHARACTERS] for line in lines)


def cases(users: Sequence[str], seed: int, count: int, *, served: Iterable[str] = SERVED) -> list[Case]:
    """Every question in every version by those who may do all or nothing; and of all the others so many, drawn."""
    random = Random(seed)
    controller = served is CONTROLLER_SERVED
    every = [
        (question, version)
        for api, version in routes(served)
        for question in QUESTIONS
        if question.api is api and question.since <= version <= question.until
        if not (controller and api.name in NOT_OF_CONTROLLERS)
    ]
    extremes = [user for user in EXTREMES if not (controller and user == ANONYMOUS)]
    found = [
        Case(*asked, user, controller)
        for asked in every
        for user in extremes
        if not _reads_metadata(asked[0], user, controller)
    ]
    drawn = [
        Case(*asked, user, controller)
        for asked in every
        for user in users
        if user not in EXTREMES and _concerns(asked[0], user) and not _reads_metadata(asked[0], user, controller)
    ]
    random.shuffle(drawn)
    found += drawn[: max(count - len(found), 0)]
    random.shuffle(found)
    return found


def _reads_metadata(question: Question, user: str, controller: bool) -> bool:
    return controller and question.api.name == "Fetch" and user not in NO_READERS


def _concerns(question: Question, user: str) -> bool:
    return not question.few or "-topic-" in user or "-cluster-" in user or "from" in user


async def put(pair: Pair, state: State, wanted: Sequence[Case], report: Report) -> None:
    """Asks both brokers every case, in order."""
    for case in wanted:
        exchange, left = await asked(pair, state, case, report)
        report.asked[case.question.api.name, case.version] += 1
        report.users[case.user] += 1
        report.unexplained += [(case.user, exchange, difference) for difference in left]
        await state.restore(exchange)


async def asked(pair: Pair, state: State, case: Case, report: Report) -> tuple[Exchange, list[Difference]]:
    """One exchange and its differences that nothing excuses; a question that changes nothing is put again meanwhile."""
    question, version, user, controller = case
    deadline = time.monotonic() + (AGAIN_WITHIN_S if question.api.name in QUIET else 0)
    while True:
        request = question.request(version, state.world)
        exchange = await pair.ask(user, question.api.name, request, version, controller=controller)
        left = list(unexcused(pair, exchange, report))
        if not left or time.monotonic() >= deadline:
            return exchange, left
        await asyncio.sleep(0.02)


def unexcused(pair: Pair, exchange: Exchange, report: Report) -> Iterator[Difference]:
    for difference in pair.differences(exchange):
        excuse = excuse_of(exchange, difference)
        if excuse is None:
            yield difference
        else:
            report.excused[excuse] += 1
