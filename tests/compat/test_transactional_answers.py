"""Hostile transactional clients are told by us what Apache Kafka tells them, and leave the same behind.

Every script of `transactions/scripts` is played on both brokers, in every version of the API that it is about, with ids
that no other has; every answer is compared, and what is there afterwards. PENSTOCK_SCRIPTS plays those alone whose
name has that text in it.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.compat.answers.asking import routes
from tests.compat.answers.duo import ANSWER_MS, Duo
from tests.compat.answers.settings import PROPERTIES
from tests.compat.answers.world import World
from tests.compat.apache.node import ApacheKafka
from tests.compat.judged import Penstock
from tests.compat.transactions.deviations import DEVIATIONS, Deviation
from tests.compat.transactions.looking import PARTITIONS, look
from tests.compat.transactions.scripts import SCRIPTS, Script
from tests.compat.transactions.stage import Report, Stage, codes

LIMITS = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
WANTED = os.environ.get("PENSTOCK_SCRIPTS", "")
AT_ONCE = 50
"""Topics that are made together."""
QUICK = PROPERTIES | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}


def played() -> list[tuple[Script, int]]:
    """Every script in every version that it is for."""
    return [
        (script, version)
        for script in SCRIPTS
        for api, version in routes()
        if api.name == script.api and script.since <= version <= script.until
        if WANTED in f"{script.api}: {script.name}"
    ]


@pytest.mark.compat
@pytest.mark.timeout(1_800)
def test_transactional_clients_are_told_what_apache_kafka_tells(tmp_path: Path) -> None:
    with (
        Penstock(tmp_path / "ours", properties=QUICK) as ours,
        ApacheKafka(tmp_path / "theirs", properties=QUICK) as theirs,
    ):
        duo, report = Duo(ours, theirs, World()), Report()
        asyncio.run(_played(duo, report))
    total = report.asked.total()
    print(f"\n{report.scripts} scripts, {total} questions; excused: {dict(report.excused)}")
    print({api: sorted(code for name, code in report.codes if name == api) for api, _ in sorted(report.codes)})
    assert not report.unexplained, str(report)


async def _played(duo: Duo, report: Report) -> None:
    wanted = played()
    try:
        await duo.seed()
        await _coordinated(duo)
        for start in range(0, len(wanted), AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, len(wanted)))
            await _make(duo, [f"topic-{number}" for number in numbers])
            for number in numbers:
                script, version = wanted[number]
                title = f"{script.api} v{version}: {script.name}"
                stage = Stage(duo, report, title, f"txn-{number}", f"topic-{number}")
                try:
                    await script.play(stage, version)
                    await look(stage)
                    await _left(stage)
                except Exception as failure:
                    failure.add_note(f"in {title}\n{report}")
                    raise
                report.scripts += 1
    finally:
        duo.close()


async def _coordinated(duo: Duo) -> None:
    """Has the topic of transactions made: FindCoordinator does it on the first who asks."""
    for side in (duo.ours, duo.theirs):
        async with asyncio.timeout(60):
            while True:
                found = await side.ask(FindCoordinatorRequest(key_type=1, key="warm"), 2)
                made = InitProducerIdRequest(transactional_id="warm", transaction_timeout_ms=60_000)
                if not any(codes(found)) and not any(codes(await side.ask(made, 4))):
                    break
                await asyncio.sleep(0.02)
    await duo.settle()


async def _make(duo: Duo, names: list[str]) -> None:
    made = CreateTopicsRequest
    topics = [made.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
    for side in (duo.ours, duo.theirs):
        reply = await side.ask(made(topics=topics, timeout_ms=ANSWER_MS), 5)
        assert [each.error_code for each in reply.topics] == [0] * len(topics), reply
    await duo.settle()


async def _left(stage: Stage) -> None:
    """Ends what is still open, so that nothing times out under a later script."""
    for name in stage.ids:
        await stage.init(4, name=name)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_every_deviation_is_on_the_limits_page(deviation: Deviation) -> None:
    assert deviation.says in " ".join(LIMITS.read_text().split())
