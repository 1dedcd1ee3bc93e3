"""Apache Kafka and our node refuse the same to the same people, element by element, but for what the limits page says.

Both have the same users, each with one ACL or with all but one, and are asked the same as each of them: by every API
and version where brokers listen, by those of clients where controllers do, and by fetches that share sessions. Then our
node goes on without the short way of its produces, and those are asked again. PENSTOCK_SEED draws other cases,
PENSTOCK_CASES says how many.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random

import pytest

from penstock.model.errors import FETCH_SESSION_ID_NOT_FOUND
from penstock.protocol.messages.delete_topics import DeleteTopicsResponse
from penstock.server.reception.dispatch import CONTROLLER_SERVED
from tests.compat.answers.asking import routes
from tests.compat.answers.comparing import Difference
from tests.compat.answers.duo import Exchange
from tests.compat.apache.node import ApacheKafka
from tests.compat.authorization import paths
from tests.compat.authorization.asking import Report, cases, put
from tests.compat.authorization.cast import ANONYMOUS, cast
from tests.compat.authorization.deviations import DEVIATIONS, Deviation, excuse_of
from tests.compat.authorization.members import compare_patterns
from tests.compat.authorization.nodes import SESSIONS_MAX, OneWay, secure
from tests.compat.authorization.pair import Pair, Side
from tests.compat.authorization.sessions import SharedSession
from tests.compat.authorization.state import State, World
from tests.compat.authorization.unanswered import compare_unanswered

LIMITS = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))
CASES = int(os.environ.get("PENSTOCK_CASES", "12000"))


@pytest.mark.compat
@pytest.mark.timeout(3_600)
def test_everybody_is_told_what_apache_kafka_tells(tmp_path: Path) -> None:
    users = cast()
    ours, theirs = OneWay(tmp_path / "ours"), ApacheKafka(tmp_path / "theirs")
    ports = [secure(node, [name for name in users if name != ANONYMOUS]) for node in (ours, theirs)]
    pair, report = Pair(Side(ours, ports[0]), Side(theirs, ports[1])), Report()
    state = State(pair, World())
    with ours, theirs:
        asyncio.run(asked_all(pair, state, report))
        ours.stop()
        assert ours.short_ways() > 0
        ours.way = paths.OFF
        ours.start()
        asyncio.run(asked_to_produce(pair, state, report))
    assert ours.short_ways() == 0
    print(f"\n{report.count} questions by {len(report.users)} users; excused: {dict(report.excused)}")
    assert not report.unexplained, str(report)
    assert set(report.asked) >= {(api.name, version) for api, version in routes()}
    assert set(report.users) >= set(users) or CASES < 12_000


async def asked_all(pair: Pair, state: State, report: Report) -> None:
    users = cast()
    random = Random(SEED)
    try:
        await state.seed(users)
        forgotten = SharedSession(pair, state, random, report)
        await forgotten.open()
        await put(pair, state, cases([*users], SEED, CASES), report)
        await put(pair, state, cases([*users], SEED, CASES // 10, served=CONTROLLER_SERVED), report)
        may_join = [user for user in users if user.startswith(("but-topic-", "all-from-here", "everything"))]
        given = {user: await compare_patterns(pair, state, user) for user in may_join}
        assert (given["everything"], given["but-topic-describe"]) == (4, 3), given
        await compare_unanswered(pair, state, random, report, CASES // 60)
        for _ in range(CASES // 60):
            await SharedSession(pair, state, random, report).live()
        await ran_out(forgotten, [SharedSession(pair, state, random, report) for _ in range(SESSIONS_MAX + 4)])
    except Exception as failure:
        failure.add_note(str(report))
        raise
    finally:
        pair.close()


async def ran_out(forgotten: SharedSession, others: list[SharedSession]) -> None:
    """A session that nobody used for two minutes gives its place to others; whoever resumes it is told so."""
    assert forgotten.id
    await forgotten.left_alone()
    for session in others:
        await session.open()
    assert sum(session.id != 0 for session in others) == SESSIONS_MAX
    assert await forgotten.resume() == FETCH_SESSION_ID_NOT_FOUND.code
    for session in others:
        await session.close()


async def asked_to_produce(pair: Pair, state: State, report: Report) -> None:
    wanted = [case for case in cases([*cast()], SEED + 1, CASES) if case.question.api.name == "Produce"]
    try:
        await put(pair, state, wanted, report)
        await compare_unanswered(pair, state, Random(SEED + 1), report, CASES // 60)
    finally:
        pair.close()


def test_what_steers_the_cluster_excuses_that_and_nothing_else() -> None:
    made = DeleteTopicsResponse

    def excused(topic: str, ours: int, theirs: int) -> bool:
        difference = Difference("X.topics[].error_code", ours, theirs, at=((repr(topic),),))
        return excuse_of(Exchange("DeleteTopics", 1, None, made(), made()), difference) is not None

    assert excused("__cluster_metadata", 29, 3)
    assert not excused("__cluster_metadata", 3, 29)
    assert not excused("__cluster_metadata", 0, 3)
    assert not excused("own", 29, 3)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_every_deviation_is_on_the_limits_page(deviation: Deviation) -> None:
    assert deviation.says in " ".join(LIMITS.read_text().split())
