"""Dead letters go back to their topic: as they were, each once, whoever is killed or comes twice."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.model.ids import TopicPartition
from penstock.spark import dialogue
from penstock.spark.errors import BadOption, Missing
from penstock.spark.lake.judging import words_of
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.redriving import redrive
from penstock.spark.redrive.driving import Overtaken, Redriven
from penstock.spark.redrive.marks_topic import MarksUnfit
from penstock.spark.values.dead_letters import DeadLetters, Reader
from penstock.spark.values.letters import DeadLetter
from penstock.testing import EmbeddedBroker, broker
from tests.patience import wait_for, within

WHEN = datetime(2026, 11, 1, 10, tzinfo=UTC)
KILLED = Path(__file__).with_name("redriving_killed.py")
FLOW = """
name = "shop"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{topic}"
format = "json"
schema = "id BIGINT"
dead_letters = "{letters}"
[sinks.lake]
from = "orders"
table = "orders"
"""


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running
    dialogue.for_process().close()


class Shop:
    """A pipeline whose source has letters in a topic or a table."""

    def __init__(self, node: EmbeddedBroker, home: Path, kind: str) -> None:
        self.bootstrap, self.home = node.bootstrap_servers, home
        self.topic = f"orders-{uuid.uuid4().hex[:8]}"
        self.dead = f"{self.topic}.dead"
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            for name in (self.topic, self.dead):
                admin.create_topic(name, 2)
        self.letters = f"topic:{self.dead}" if kind == "topic" else f"table:{home}/dead"
        self.file = home / "shop.toml"
        self.file.write_text(FLOW.format(bootstrap=self.bootstrap, topic=self.topic, letters=self.letters))

    def give(self, *letters: DeadLetter) -> None:
        DeadLetters.of(self.letters, {"bootstrap_servers": self.bootstrap}).deliver(letters, Reader("q", 1))

    def letter(self, offset: int, **changes: Any) -> DeadLetter:
        given: dict[str, Any] = {
            "topic": self.topic,
            "partition": 1,
            "offset": offset,
            "timestamp": WHEN,
            "key": b"k%d" % offset,
            "value": b"%d" % offset,
            "headers": (("trace", b"abc"),),
            "error": "not JSON",
        }
        return DeadLetter(**{**given, **changes})

    def redrive(self, **how: Any) -> Redriven:
        return redrive(read_flow(self.file), "orders", **how)

    def sent(self, topic: str | None = None) -> list[Any]:
        """What readers of committed records have of a topic, when nothing in it is open."""
        settings = {"bootstrap_servers": self.bootstrap, "isolation_level": "read_committed"}
        places = [TopicPartition(topic or self.topic, index) for index in (0, 1)]
        with (
            Consumer(**settings, offset_reset="earliest") as consumer,
            Admin(bootstrap_servers=self.bootstrap) as admin,
        ):
            consumer.assign(places)
            ends = admin.offsets(dict.fromkeys(places, "latest")).checked()
            found: list[Any] = []

            def read() -> bool:
                found.extend(consumer.poll(timeout_ms=50))
                return all(consumer.position(place) >= ends[place].offset for place in places)

            wait_for("the ends", read, timeout_s=20)
            return found

    def values(self, topic: str | None = None) -> list[int]:
        return sorted(int(record.value) for record in self.sent(topic))


@pytest.fixture(params=["topic", "table"])
def shop(node: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop(node, tmp_path, request.param)


@pytest.fixture
def shop_of_topic(node: EmbeddedBroker, tmp_path: Path) -> Shop:
    return Shop(node, tmp_path, "topic")


def test_a_letter_goes_back_as_the_record_that_it_was(shop: Shop) -> None:
    # A record's own header may have the name of one of ours.
    shop.give(shop.letter(7, headers=(("trace", b"abc"), ("penstock.error", b"mine"))))
    shop.redrive()
    (record,) = shop.sent()
    assert (record.partition, record.key, record.value) == (1, b"k7", b"7")
    assert list(record.headers) == [
        ("trace", b"abc"),
        ("penstock.error", b"mine"),
        ("penstock.redriven", f"{shop.topic}-1@7 2026-11-01T10:00:00+00:00".encode()),
    ]


def test_what_was_sent_is_not_sent_again_and_what_comes_later_is(shop: Shop) -> None:
    shop.give(*map(shop.letter, range(5)))
    assert shop.redrive().letters == 5
    assert shop.redrive().letters == 0
    shop.give(shop.letter(5), shop.letter(2))
    assert shop.redrive().letters == 1
    assert shop.values() == [0, 1, 2, 3, 4, 5]


def test_a_letter_that_its_topic_has_twice_is_sent_once(shop_of_topic: Shop) -> None:
    shop = shop_of_topic
    shop.give(shop.letter(1))
    shop.give(shop.letter(1))
    assert (shop.redrive().letters, shop.values()) == (1, [1])
    shop.give(shop.letter(1), shop.letter(2))
    assert (shop.redrive().twins, shop.values()) == (1, [1, 2])


def test_letters_of_other_sources_stay_and_other_records_are_told(shop: Shop) -> None:
    shop.give(shop.letter(1), shop.letter(2, topic="others"))
    if shop.letters.startswith("topic"):
        with Producer(bootstrap_servers=shop.bootstrap) as producer:
            producer.send(shop.dead, b"9").result()
    done = shop.redrive()
    assert (done.letters, done.others, done.done) == (1, int(shop.letters.startswith("topic")), True)
    assert shop.values() == [1]


def test_a_dry_run_counts_and_sends_nothing(shop: Shop) -> None:
    shop.give(shop.letter(1), shop.letter(2), shop.letter(3, error="no number"))
    told = shop.redrive(dry_run=True)
    assert (told.letters, told.by_target, told.dry_run) == (3, {shop.topic: 3}, True)
    assert dict(told.errors) == {"not JSON": 2, "no number": 1}
    assert shop.sent() == []
    assert (shop.redrive().letters, shop.redrive(dry_run=True).letters) == (3, 0)


def test_a_limit_ends_it_and_the_next_run_goes_on(shop: Shop) -> None:
    shop.give(*map(shop.letter, range(5)))
    assert (shop.redrive(limit=2).done, len(shop.sent())) == (False, 2)
    done = shop.redrive()
    assert (done.letters, done.done, shop.values()) == (3, True, [0, 1, 2, 3, 4])


def test_another_topic_takes_them_by_their_keys(shop: Shop) -> None:
    with Admin(bootstrap_servers=shop.bootstrap) as admin:
        admin.create_topic(f"{shop.topic}-again", 2)
    shop.give(*(shop.letter(at, key=b"same") for at in range(4)))
    assert shop.redrive(into=f"{shop.topic}-again").by_target == {f"{shop.topic}-again": 4}
    assert len({record.partition for record in shop.sent(f"{shop.topic}-again")}) == 1
    assert shop.sent() == []


def test_a_run_that_is_stopped_ends_between_two_transactions(shop: Shop) -> None:
    shop.give(*map(shop.letter, range(6)))
    stop = Event()
    done = shop.redrive(rate_per_s=2, stop=stop, watch=lambda told: stop.set() if told.letters else None)
    assert (done.letters, done.done) == (2, False)
    assert shop.redrive().letters == 4
    assert shop.values() == list(range(6))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_is_killed_neither_loses_nor_doubles(shop: Shop, moment: str) -> None:
    shop.give(*map(shop.letter, range(10)))
    command = [sys.executable, str(KILLED), str(shop.file), "orders", moment]
    assert subprocess.run(command, timeout=within(60), check=False).returncode == -9
    assert shop.redrive().letters == (7 if moment == "before" else 4)
    assert shop.values() == list(range(10))


def test_of_two_runs_one_goes_on(shop: Shop) -> None:
    shop.give(*map(shop.letter, range(6)))

    def second(told: Redriven) -> None:
        from concurrent.futures import ThreadPoolExecutor

        if told.letters == 2:
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(shop.redrive).result()

    with pytest.raises(Overtaken, match="another run has begun with the same letters"):
        shop.redrive(rate_per_s=2, watch=second)
    assert shop.values() == list(range(6))


def test_a_letter_that_broke_a_rule_goes_back_as_its_record(shop: Shop) -> None:
    """It has the row; its record is in the topic as long as that keeps it."""
    with Producer(bootstrap_servers=shop.bootstrap) as producer:
        headers = [("trace", b"abc")]
        producer.send(shop.topic, b'{ "id": 5 }', key=b"k", partition=1, headers=headers).result()
    (record,) = shop.sent()
    time = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    row = {"key": b"k", "value": b'{"id":5}', "headers": (), "error": words_of("small", "id < 5")}
    shop.give(shop.letter(0, timestamp=time, **row), shop.letter(1, **row))
    shop.redrive()
    first, *again = shop.sent()
    assert (first.value, [each.value for each in again]) == (b'{ "id": 5 }', [b'{ "id": 5 }', b'{"id":5}'])
    assert [name for name, _ in again[0].headers] == ["trace", "penstock.redriven"]


def test_what_cannot_be_is_told(shop: Shop) -> None:
    shop.give(shop.letter(1))
    with pytest.raises(Missing, match=r"there is no topic nowhere .* --into"):
        shop.redrive(into="nowhere")
    with pytest.raises(BadOption, match="did you mean 'orders'"):
        redrive(read_flow(shop.file), "order")
    shop.file.write_text(shop.file.read_text().replace(shop.letters, "drop"))
    with pytest.raises(BadOption, match=r'dead_letters = "drop", so none were kept'):
        shop.redrive()


def test_marks_that_would_be_forgotten_are_not_relied_on(node: EmbeddedBroker, tmp_path: Path) -> None:
    shop = Shop(node, tmp_path, "topic")
    with Admin(bootstrap_servers=shop.bootstrap) as admin:
        if "__penstock_redrive" in {each.name for each in admin.topics(internal=True)}:
            admin.delete_topic("__penstock_redrive")
        admin.create_topic("__penstock_redrive", 1, configs={"cleanup.policy": "delete"})
        try:
            with pytest.raises(MarksUnfit, match=r"cleanup\.policy=delete"):
                shop.redrive()
        finally:
            admin.delete_topic("__penstock_redrive")
