"""Records and their positions in one transaction: whatever brokers do, a line is in its topic exactly once."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from penstock.agent.admin.snapshot import decode, picture
from penstock.agent.agent import Agent
from penstock.agent.errors import AgentError, AgentFenced, CannotReload, PositionsVanished
from penstock.agent.exactly.topic import TOPIC
from penstock.agent.settings import AgentSettings
from penstock.agent.view.sentences import description
from penstock.client.admin import Admin
from penstock.client.admin.acls import Acl
from penstock.client.admin.scram_users import ScramPassword
from penstock.client.consumer import Consumer
from penstock.client.producer import Producer
from penstock.testing import EmbeddedBroker, broker
from tests.faults.agent.tailing import append, numbered
from tests.faults.counts import SOAKING
from tests.patience import until, within
from tests.walks.agent.scene import committed_values, feed, lines, running, settings_of

EXACTLY = 'exactly_once = true\nmachine_id = "m1"\n'
ID = "penstock-agent/walk/m1"

TAIL = """
[inputs.app]
type = "tail"
paths = ["{paths}"]
topic = "app"
poll_min = "5ms"
discover = "50ms"
rotate_wait = "200ms"
read_bytes = 8192
dead_letters = "dead"
"""


@pytest.fixture(autouse=True)
def _short_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.agent.exactly.transactions.EVERY_MS", 50.0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "app.log"
    path.parent.mkdir()
    return path


@pytest.fixture
def settings(tmp_path: Path, log: Path, node: EmbeddedBroker) -> AgentSettings:
    return settings_of(tmp_path, node.bootstrap_servers, TAIL.format(paths=log), top=EXACTLY)


def sent(agent: Agent) -> int:
    return agent.status().inputs["app"].events_out


def commits(agent: Agent) -> int:
    assert agent.transactions is not None
    return agent.transactions.commits


async def test_every_life_goes_on_where_the_one_before_committed(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    written: list[bytes] = []
    for life in range(3):
        lines = numbered(f"life {life}", 0, 300)
        append(log, lines)
        written += lines
        async with running(settings) as agent:
            await until(lambda agent=agent: sent(agent) == 300)
    assert await committed_values(node.bootstrap_servers, "app", 900) == written


async def test_it_says_how_its_transactions_go(settings: AgentSettings, log: Path, node: EmbeddedBroker) -> None:
    async with running(settings) as agent:
        append(log, numbered("line", 0, 100))
        await until(lambda: sent(agent) == 100)
        node.fail(api="Produce", code="INVALID_TXN_STATE")
        append(log, numbered("line", 100, 100))
        await until(lambda: sent(agent) == 200)
        told = agent.status().transactions
        snapshot = picture(agent.status(), settings, up_s=1.0)
    assert told is not None
    assert (told.id, told.topic, told.commits, told.aborts) == (ID, "__penstock_agent", commits(agent), 1)
    assert 0 < told.last_commit_age_s < 60
    assert decode(json.dumps(snapshot.data()).encode()).transactions == snapshot.transactions
    (line,) = (each for each in description(snapshot) if "committed" in each)
    assert f"transactions of {ID}: {told.commits} committed" in line
    assert line.endswith("ago, 1 aborted")


async def test_the_state_folder_is_not_needed_to_go_on(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    append(log, numbered("a", 0, 100))
    async with running(settings) as agent:
        await until(lambda: sent(agent) == 100)
    other = settings_of(
        tmp_path, node.bootstrap_servers, TAIL.format(paths=log), top=f'{EXACTLY}state_dir = "{tmp_path / "new"}"\n'
    )
    append(log, numbered("b", 0, 100))
    async with running(other) as agent:
        await until(lambda: sent(agent) == 100)
    assert await committed_values(node.bootstrap_servers, "app", 200) == numbered("a", 0, 100) + numbered("b", 0, 100)


REFUSALS = [
    ("EndTxn", "TRANSACTION_ABORTABLE", 2),
    ("EndTxn", "INVALID_PRODUCER_EPOCH", 1),
    ("EndTxn", "CONCURRENT_TRANSACTIONS", 3),
    ("EndTxn", "NOT_COORDINATOR", 2),
    ("Produce", "NOT_ENOUGH_REPLICAS", 3),
    ("Produce", "TOPIC_AUTHORIZATION_FAILED", 2),
    ("Produce", "INVALID_PRODUCER_EPOCH", 1),
    ("Produce", "TRANSACTION_ABORTABLE", 2),
    ("Produce", "INVALID_TXN_STATE", 1),
]


@pytest.mark.parametrize(("api", "code", "times"), REFUSALS if SOAKING else REFUSALS[::2])
async def test_what_is_refused_is_sent_again_and_none_of_it_twice(
    settings: AgentSettings, log: Path, node: EmbeddedBroker, api: str, code: str, times: int
) -> None:
    written = numbered("line", 0, 2_000)
    async with running(settings) as agent:
        append(log, written[:100])
        await until(lambda: sent(agent) == 100)
        node.fail(api=api, code=code, times=times)
        for first in range(100, 2_000, 100):
            append(log, written[first : first + 100])
            await asyncio.sleep(0.005)  # the pace of the writer
        await until(lambda: sent(agent) == 2_000)
        assert node.faults_left(api) == 0
        assert agent.status().inputs["app"].unsendable == 0
    assert await committed_values(node.bootstrap_servers, "app", 2_000) == written


LOST = [("EndTxn", True), ("EndTxn", False), ("Produce", True), ("InitProducerId", True)]


@pytest.mark.parametrize(("api", "served"), [*LOST, ("Produce", False), ("InitProducerId", False)] if SOAKING else LOST)
async def test_an_answer_that_is_lost_doubles_nothing(
    settings: AgentSettings, log: Path, node: EmbeddedBroker, api: str, served: bool
) -> None:
    written = numbered("line", 0, 1_000)
    if api == "InitProducerId":
        node.disconnect(api=api, times=2, served=served)
    async with running(settings) as agent:
        append(log, written[:100])
        await until(lambda: sent(agent) == 100)
        if api != "InitProducerId":
            node.disconnect(api=api, times=2, served=served)
        for first in range(100, 1_000, 100):
            append(log, written[first : first + 100])
            await asyncio.sleep(0.005)  # the pace of the writer
        await until(lambda: sent(agent) == 1_000)
        assert node.faults_left(api) == 0
    assert await committed_values(node.bootstrap_servers, "app", 1_000) == written


@pytest.mark.parametrize("code", ["INVALID_PRODUCER_EPOCH", "TRANSACTION_ABORTABLE"])
@pytest.mark.parametrize("ends", ["lost and served", "lost"])
async def test_a_commit_whose_end_nobody_tells_is_looked_up_in_the_topic(
    settings: AgentSettings, log: Path, node: EmbeddedBroker, ends: str, code: str
) -> None:
    """The coordinator has forgotten by the time it is asked again: only the log knows."""
    written = numbered("line", 0, 500)
    async with running(settings) as agent:
        append(log, written[:100])
        await until(lambda: sent(agent) == 100)
        node.disconnect(api="EndTxn", times=1, served=ends == "lost and served")
        node.fail(api="FindCoordinator", code="COORDINATOR_NOT_AVAILABLE", times=2)
        append(log, written[100:])
        await until(lambda: node.faults_left("EndTxn") == 0)
        # What a coordinator answers that knows of a newer producer, or of nothing.
        node.fail(api="EndTxn", code=code)
        await until(lambda: sent(agent) == 500)
    assert await committed_values(node.bootstrap_servers, "app", 500) == written


async def test_a_first_commit_whose_end_nobody_tells_holds_nothing_up(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    append(log, numbered("line", 0, 100))
    node.disconnect(api="EndTxn", times=1, served=True)
    node.fail(api="EndTxn", code="INVALID_PRODUCER_EPOCH")
    async with running(settings) as agent:
        await until(lambda: sent(agent) == 100)
    assert await committed_values(node.bootstrap_servers, "app", 100) == numbered("line", 0, 100)


async def test_a_transaction_that_timed_out_is_no_reason_to_end(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    written = numbered("line", 0, 1_000)
    async with running(settings) as agent:
        append(log, written[:100])
        await until(lambda: sent(agent) == 100)
        for first in range(100, 1_000, 100):
            append(log, written[first : first + 100])
            node.advance(seconds=15)
        await until(lambda: sent(agent) == 1_000)
    assert await committed_values(node.bootstrap_servers, "app", 1_000) == written


async def test_what_can_never_be_sent_goes_to_dead_letters_with_the_rest(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    async with Admin(**node.client_settings) as admin:
        await admin.create_topic("app", 1, configs={"max.message.bytes": "20000"})
        await admin.create_topic("dead", 1)
    noise = random.Random(1)
    large = [noise.randbytes(30_000).hex().encode() for _ in range(2)]
    small = numbered("line", 0, 400)
    append(log, [*small[:200], large[0], *small[200:], large[1]])
    async with running(settings) as agent:
        await until(lambda: agent.status().inputs["app"].waiting_bytes == 0 and sent(agent) >= 400)
    assert await committed_values(node.bootstrap_servers, "app", 400) == small
    assert await committed_values(node.bootstrap_servers, "dead", 2) == large


async def test_an_agent_that_was_replaced_ends_and_says_so(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    written = numbered("line", 0, 300)
    append(log, written[:100])
    other = settings_of(
        tmp_path, node.bootstrap_servers, TAIL.format(paths=log), top=f'{EXACTLY}state_dir = "{tmp_path / "new"}"\n'
    )
    first = Agent(settings)
    replaced = asyncio.ensure_future(first.run())
    await until(lambda: first.ready.is_set() and sent(first) == 100)
    async with running(other) as agent:
        await until(lambda: commits(agent) > 0)
        append(log, written[100:200])
        with pytest.raises(AgentFenced, match="two agents must not share a name"):
            await replaced
        append(log, written[200:])
        await until(lambda: sent(agent) == 200)
    assert await committed_values(node.bootstrap_servers, "app", 300) == written


async def test_a_foreign_producer_with_its_id_costs_a_transaction_and_no_line(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    """Somebody who fences and leaves no stamp is no successor."""
    written = numbered("line", 0, 200)
    async with running(settings) as agent:
        append(log, written[:100])
        await until(lambda: sent(agent) == 100)
        async with Producer(node.bootstrap_servers, transactional_id=ID):
            pass
        append(log, written[100:])
        await until(lambda: sent(agent) == 200)
    assert await committed_values(node.bootstrap_servers, "app", 200) == written


async def test_a_topic_of_positions_that_vanished_is_an_error(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    append(log, numbered("line", 0, 100))
    async with running(settings) as agent:
        await until(lambda: sent(agent) == 100)
    async with Admin(**node.client_settings) as admin:
        await admin.delete_topic(TOPIC)
        for _ in range(2):
            with pytest.raises(PositionsVanished, match="exactly_once = false"):
                await Agent(settings).run()
        # Somebody else's agent, or Kafka's own creation of topics, has made it again.
        await admin.create_topic(TOPIC, 16, configs={"cleanup.policy": "compact"})
    with pytest.raises(PositionsVanished):
        await Agent(settings).run()


async def test_a_topic_of_positions_that_vanishes_while_it_runs_is_an_error(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    written = numbered("line", 0, 200)
    agent = Agent(settings)
    life = asyncio.ensure_future(agent.run())
    append(log, written[:100])
    await until(lambda: agent.ready.is_set() and sent(agent) == 100)
    async with Admin(**node.client_settings) as admin:
        await admin.delete_topic(TOPIC)
        await admin.create_topic(TOPIC, 16, configs={"cleanup.policy": "compact"})
    append(log, written[100:])
    with pytest.raises(PositionsVanished):
        await life
    with pytest.raises(PositionsVanished):
        await Agent(settings).run()


async def test_a_topic_of_positions_that_another_agent_has_made_anew_is_an_error(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    """That one has written so much that offsets go on rising for whoever was before."""
    (tmp_path / "other").mkdir()
    other_log = tmp_path / "other" / "app.log"
    top = EXACTLY.replace("m1", "m2")
    others = settings_of(tmp_path / "other", node.bootstrap_servers, TAIL.format(paths=other_log), top=top)
    agent = Agent(settings)
    async with Admin(**node.client_settings) as admin:
        await admin.create_topic(TOPIC, 1, configs={"cleanup.policy": "compact"})
        life = asyncio.ensure_future(agent.run())
        append(log, numbered("line", 0, 10))
        await until(lambda: agent.ready.is_set() and sent(agent) == 10)
        await admin.delete_topic(TOPIC)
        await admin.create_topic(TOPIC, 1, configs={"cleanup.policy": "compact"})
        async with running(others) as other:
            for number in range(12):
                append(other_log, numbered("other", number, 1))
                await until(lambda number=number: sent(other) == number + 1)
        before = commits(agent)
        append(log, numbered("line", 10, 10))
        with pytest.raises(PositionsVanished):
            async with asyncio.timeout(within(20)):
                await life
        assert commits(agent) == before


async def test_a_topic_that_forgets_is_refused(settings: AgentSettings, node: EmbeddedBroker) -> None:
    async with Admin(**node.client_settings) as admin:
        await admin.create_topic(TOPIC, 1)
    with pytest.raises(AgentError, match=r"cleanup\.policy=delete and would forget positions"):
        await Agent(settings).run()


async def test_from_at_least_once_to_exactly_once_and_back(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    plain = settings_of(tmp_path, node.bootstrap_servers, TAIL.format(paths=log))
    written = numbered("line", 0, 600)
    for number, each in enumerate([plain, settings, plain, settings, settings, plain]):
        append(log, written[number * 100 : number * 100 + 100])
        async with running(each) as agent:
            await until(lambda agent=agent: sent(agent) == 100)
    assert await committed_values(node.bootstrap_servers, "app", 600) == written


async def test_a_spool_directory_is_put_away_only_when_it_is_committed(tmp_path: Path, node: EmbeddedBroker) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    more = (
        f'[inputs.app]\ntype = "spooldir"\ndirectory = "{folder}"\ntopic = "app"\nsettle = "10ms"\ndiscover = "20ms"\n'
    )
    settings = settings_of(tmp_path, node.bootstrap_servers, more, top=EXACTLY)
    written: list[bytes] = []
    async with running(settings) as agent:
        await until(lambda: commits(agent) > 0)
        dropped = folder / "drop.csv"
        for number in range(6):
            # The same name over and over: what was put away before is another file.
            lines = numbered(f"file {number}", 0, 200)
            append(folder / "part", lines)
            (folder / "part").rename(dropped)
            written += lines
            if number % 2:
                node.fail(api="EndTxn", code="TRANSACTION_ABORTABLE")
            await until(lambda: not dropped.exists())
            assert sent(agent) == len(written), "it is put away when all of it is committed"
    assert await committed_values(node.bootstrap_servers, "app", len(written)) == written


SPOOLED = """
[spool]
size = "100 MB"
after = "200ms"
[inputs.one]
type = "feed"
topic = "one"
"""


@pytest.fixture
def feeds_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.agent.agent.SPOOLED", frozenset({"feed"}))
    monkeypatch.setattr("penstock.agent.settings.reading.SPOOLED", frozenset({"feed"}))


@pytest.mark.usefixtures("feeds_spool")
async def test_what_is_spooled_is_committed_once_through_many_lives(tmp_path: Path, node: EmbeddedBroker) -> None:
    """The agent is stopped with transactions open and the spool half sent, again and again."""
    settings = settings_of(tmp_path, node.bootstrap_servers, SPOOLED, top=EXACTLY, flush_within="100ms")
    count, chance = 0, random.Random(1)
    for life in range(8 if SOAKING else 3):
        async with running(settings) as agent:
            await until(lambda agent=agent: commits(agent) > 0)
            source = await feed()
            for _ in range(40):
                await source.put(lines(count, 25, 500))
                count += 25
                await asyncio.sleep(chance.random() * 0.01)  # the pace of the sender
            node.stop()
            for _ in range(40):
                await source.put(lines(count, 25, 500))
                count += 25
            if life % 2:
                await until(lambda agent=agent: agent.status().outlet.spooling)
                node.start()
        assert source.all_done, "what brokers do not have is in the spool"
        if not node.running:
            node.start()
    async with running(settings) as agent:
        await until(lambda: commits(agent) > 0 and agent.status().outlet.spool_bytes == 0)
    found = [int(value) for value in await committed_values(node.bootstrap_servers, "one", count)]
    assert sorted(found) == list(range(count))


async def test_a_reload_changes_the_producer_and_not_the_mode(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    written = numbered("line", 0, 1_000)
    here, more = node.bootstrap_servers, TAIL.format(paths=log)
    async with running(settings) as agent:
        for number in range(10):
            append(log, written[number * 100 : number * 100 + 100])
            output = f'compression = "{("zstd", "lz4")[number % 2]}"'
            await agent.reload(settings_of(tmp_path, here, more, output=output, top=EXACTLY))
        await until(lambda: sent(agent) == 1_000)
        for changed in ("", EXACTLY.replace("m1", "m2")):
            with pytest.raises(CannotReload, match="restart it"):
                await agent.reload(settings_of(tmp_path, here, more, top=changed))
    assert await committed_values(here, "app", 1_000) == written


async def test_an_agent_starts_without_brokers_and_ends_without_them(
    settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    written = numbered("line", 0, 100)
    append(log, written)
    node.stop()
    async with running(settings) as agent:
        await until(lambda: "cannot be read" in agent.teller.last_error or not agent.status().outlet.brokers_reachable)
    async with running(settings) as agent:
        node.start()
        await until(lambda: sent(agent) == 100)
    assert await committed_values(node.bootstrap_servers, "app", 100) == written


@pytest.mark.parametrize("seed", range(1, 41 if SOAKING else 3))
async def test_whatever_brokers_do_no_line_is_lost_or_doubled(
    settings: AgentSettings, log: Path, node: EmbeddedBroker, seed: int
) -> None:
    chance, written = random.Random(seed), numbered("line", 0, 6_000)

    async def write() -> None:
        for first in range(0, 6_000, 100):
            append(log, written[first : first + 100])
            await asyncio.sleep(chance.random() * 0.05)  # the pace of the writer

    async with running(settings) as agent:
        writing = asyncio.ensure_future(write())
        for _ in range(20 if SOAKING else 8):
            await trouble(node, chance)
        await writing
        await until(lambda: sent(agent) == 6_000)
    assert await committed_values(node.bootstrap_servers, "app", 6_000) == written


async def trouble(node: EmbeddedBroker, chance: random.Random) -> None:
    api = chance.choice(["EndTxn", "Produce", "InitProducerId", "FindCoordinator", "Metadata"])
    match chance.randrange(6):
        case 0:
            node.stop()
            await asyncio.sleep(chance.random() * 0.4)
            node.start()
        case 1:
            with node.paused():
                await asyncio.sleep(chance.random() * 0.4)
        case 2:
            node.fail(api="EndTxn", code=chance.choice(["TRANSACTION_ABORTABLE", "INVALID_PRODUCER_EPOCH"]))
        case 3:
            node.disconnect(api=api, times=chance.randrange(1, 4), served=bool(chance.randrange(2)))
        case 4:
            node.advance(seconds=chance.choice([1, 15]))
    await asyncio.sleep(chance.random() * 0.1)


async def test_positions_are_keyed_by_agent_and_machine(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    """A cloned machine shares the name and the file; what is on its disk is its own."""
    append(log, numbered("line", 0, 50))
    clone = settings_of(
        tmp_path,
        node.bootstrap_servers,
        TAIL.format(paths=log),
        top=EXACTLY.replace("m1", "m2") + f'state_dir = "{tmp_path / "clone"}"\n',
    )
    async with running(settings) as one, running(clone) as other:
        await until(lambda: sent(one) == 50 and sent(other) == 50)
    found = await committed_values(node.bootstrap_servers, "app", 100)
    assert sorted(found) == sorted(numbered("line", 0, 50) * 2)


def test_keys_of_the_topic_are_json() -> None:
    from penstock.agent.exactly.identity import Identity
    from penstock.agent.exactly.rows import key_of

    assert json.loads(key_of(Identity("a", "m"), "in", "/odd/\udcff")) == ["a", "m", "in", "/odd/\udcff"]


GRANTED = (
    ("topic", "app", "literal", ("write", "describe", "create")),
    ("topic", TOPIC, "literal", ("read", "write", "describe", "describe_configs", "create")),
    ("transactional_id", "penstock-agent/walk/", "prefixed", ("write", "describe")),
)
"""What the guide says that an agent needs."""


async def test_the_acls_of_the_guide_are_enough(tmp_path: Path, log: Path) -> None:
    written = numbered("line", 0, 200)
    with broker({"num.partitions": 1}, secure=True) as node:
        async with Admin(**node.client_settings) as admin:
            (await admin.alter_scram_users([ScramPassword("agent", "secret")])).checked()
            acls = [
                Acl("User:agent", operation, resource, name, pattern)
                for resource, name, pattern, operations in GRANTED
                for operation in operations
            ]
            (await admin.create_acls(acls)).checked()
        login = {**node.client_settings, "username": "agent", "password": "secret"}
        del login["bootstrap_servers"]
        kafka = "".join(f', "{name}" = "{value}"' for name, value in login.items())
        settings = settings_of(tmp_path, node.bootstrap_servers, TAIL.format(paths=log), top=EXACTLY, kafka=kafka)
        for first in (0, 100):
            append(log, written[first : first + 100])
            async with running(settings) as agent:
                await until(lambda agent=agent: sent(agent) == 100, lambda agent=agent: agent.teller.last_error)
        found: list[bytes] = []
        more = {**node.client_settings, "offset_reset": "earliest", "isolation_level": "read_committed"}
        async with Consumer(**more) as consumer:
            consumer.assign([("app", 0)])
            while len(found) < 200:
                found += [record.value or b"" for record in await consumer.poll(timeout_ms=200)]
        assert found == written


async def test_a_reload_may_bring_the_address_that_was_wrong_at_the_start(
    tmp_path: Path, settings: AgentSettings, log: Path, node: EmbeddedBroker
) -> None:
    append(log, numbered("line", 0, 100))
    wrong = settings_of(tmp_path, "127.0.0.1:1", TAIL.format(paths=log), top=EXACTLY, flush_within="100ms")
    async with running(wrong) as agent:
        await until(lambda: "cannot be read" in agent.teller.last_error)
        await agent.reload(settings)
        await until(lambda: sent(agent) == 100)
    assert await committed_values(node.bootstrap_servers, "app", 100) == numbered("line", 0, 100)
