"""What type checkers and editors know of the client: its names, its settings, its methods."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.client.consumer.reset import parse_reset
from penstock.client.errors import BadSetting
from penstock.client.keywords import AdminKeywords, ConsumerKeywords, ProducerKeywords
from penstock.client.settings import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    Partitioner,
    ProducerSettings,
    keyword_names,
)

WITHIN_S = 280

PROGRAM = """\
from datetime import timedelta

import penstock
from penstock import Admin, Consumer, Producer
from penstock import Nonsense  # error: has no attribute "Nonsense"
from penstock import blocking

penstock.Nonsense  # error: has no attribute "Nonsense"


def by_length(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
    return len(value or b"") % partitions


async def right() -> None:
    async with Producer("localhost:9092", acks="all", compression="zstd", partitioner=by_length) as producer:
        report = await producer.send("orders", b"v", key="k")
        report.offset + 1
    async with Consumer("orders", bootstrap_servers=["a:1", "b:2"], auto_offset_reset="earliest") as consumer:
        async for record in consumer:
            record.offset + 1
    async with Admin(bootstrap_servers="a:1", default_api_timeout_ms=5_000) as admin:
        await admin.create_topic("orders", partitions=3)


async def right_in_transactions(prepared: penstock.PreparedTransaction) -> None:
    async with Producer("localhost:9092", transactional_id="t", transaction_timeout_ms=1_000) as producer:
        async with producer.transaction(), Consumer("orders", group_id="g", auto_commit=False) as consumer:
            await producer.send_offsets(consumer)
            await producer.send_offsets(penstock.GroupMetadata("g"), {("orders", 0): 1})
        await producer.begin()
        prepared = await producer.prepare()
        await producer.commit()
    async with Admin() as admin:
        (await admin.end_transaction(prepared, commit=True)).epoch + 1
        await admin.end_transaction(prepared)  # error: Missing named argument "commit"
    with blocking.Producer(transactional_id="t") as blocked, blocked.transaction():
        blocked.send_offsets(blocking.Consumer("orders", group_id="g"))
        blocked.send_offsets(consumer)  # error: incompatible type
    penstock.TransactionAbortable, penstock.TransactionFenced


def right_without_await() -> None:
    with blocking.Producer("localhost:9092", enable_idempotence=False, retries=3) as producer:
        producer.send("orders", b"v").result().offset + 1
    with blocking.Consumer("orders", offset_reset=timedelta(hours=1), isolation_level="read_committed") as consumer:
        for record in consumer:
            record.offset + 1
    with blocking.Admin(request_timeout_ms=100) as admin:
        admin.create_topic("orders")


def right_with_security() -> None:
    Producer(username="alice", password="secret", cafile="ca.pem", mechanism="SCRAM-SHA-512")
    Consumer("orders", security_protocol="SSL", ssl_truststore_location="ca.pem", ssl_truststore_type="PEM")
    blocking.Admin(client_config="client.properties")


def wrong() -> None:
    Producer(security_protocol="TLS")  # error: expected "Literal['PLAINTEXT'
    Consumer(usrname="alice")  # error: did you mean "username"?
    Producer(liger_ms=20)  # error: did you mean "linger_ms"?
    Producer(linger_ms="soon")  # error: expected "int"
    Producer(compression="zip")  # error: expected "Literal['none'
    Consumer(offset_reset="earliestt")  # error: expected "Literal['earliest'
    Consumer("orders", acks="all")  # error: Unexpected keyword argument "acks"
    Admin(group_id="g")  # error: Unexpected keyword argument "group_id"
    blocking.Producer(group_id="g")  # error: Unexpected keyword argument "group_id"
    blocking.Consumer("orders", gruop_id="g")  # error: did you mean "group_id"?
    blocking.Admin(acks=1)  # error: Unexpected keyword argument "acks"
    Producer().sendd("orders")  # error: has no attribute "sendd"
    Consumer().pol()  # error: has no attribute "pol"
"""


def test_names_settings_and_methods_are_known_to_mypy(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(file)],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    told = {int(line): words for line, words in re.findall(r"program\.py:(\d+): error: (.*)", checked.stdout)}
    wanted = {
        number: line.partition("# error: ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "# error: " in line
    }
    assert told.keys() == wanted.keys(), checked.stdout + checked.stderr
    assert [(told[number], words) for number, words in wanted.items() if words not in told[number]] == []


@pytest.mark.parametrize(
    ("keywords", "settings"),
    [(ProducerKeywords, ProducerSettings), (ConsumerKeywords, ConsumerSettings), (AdminKeywords, AdminSettings)],
)
def test_keywords_are_the_names_of_settings(keywords: type, settings: type[CommonSettings]) -> None:
    assert keywords.__annotations__.keys() | {"bootstrap_servers"} == set(keyword_names(settings))


@pytest.mark.parametrize(("given", "kept"), [(timedelta(hours=1), 3_600_000), (timedelta(milliseconds=1), 1)])
def test_a_time_is_a_way_to_say_how_far_back_to_read(given: timedelta, kept: int) -> None:
    reset = ConsumerSettings.of({"offset_reset": given}).offset_reset
    assert parse_reset(reset).duration_ms == kept
    with pytest.raises(BadSetting, match="not negative"):
        ConsumerSettings.of({"offset_reset": -given})


def test_a_setting_takes_what_its_keyword_says() -> None:
    """Every word that a keyword allows is one that its setting takes."""
    from typing import get_args, get_type_hints

    for keywords, settings in ((ProducerKeywords, ProducerSettings), (ConsumerKeywords, ConsumerSettings)):
        names = keyword_names(settings)
        for name, kind in get_type_hints(keywords, {"Partitioner": Partitioner}).items():
            samples = [
                word for part in (kind, *get_args(kind)) for word in get_args(part) if isinstance(word, (str, int))
            ]
            for word in samples:
                names[name].metadata["check"](word)
