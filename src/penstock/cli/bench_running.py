"""What `penstock bench` does with its options: checks them, measures, prints. Imported when it runs."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from penstock.bench.course import Course, Outcome, Phase
from penstock.bench.crew import Crew
from penstock.bench.settings import RAW, STAMP_BYTES, Settings
from penstock.bench.targets import Target
from penstock.bench.telling import as_data, as_text, write_page
from penstock.cli import on_a_loop
from penstock.cli.client_settings import known
from penstock.cli.connection import Connection
from penstock.cli.options import pairs
from penstock.cli.output import show
from penstock.cli.progress import Countdown
from penstock.client.cluster_view import parse_bootstrap
from penstock.client.errors import BadSetting
from penstock.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from penstock.model.units import count
from penstock.operations.records.offsets import BadOffset, parse_duration_ms

QUICK = {"rounds": 1, "seconds": 0.3, "warm_up": "100ms", "topic_bytes": 5_000_000}

_RATE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>|/s|[kM]B/s|[kM]B)")
_BYTES = {"kB": 1e3, "MB": 1e6}


def run(kind: str, connection: Connection, given: Mapping[str, Any]) -> None:
    settings = settings_of(given)
    check(kind, settings)
    if kind == "spark":
        from penstock.bench.spark_client import check_installed

        check_installed()
    targets = targets_of(connection, given["versus"])
    try:
        outcome = on_a_loop.run(_measure(kind, targets, settings))
    except asyncio.CancelledError:
        # SIGTERM ends it as Ctrl-C does.
        raise click.Abort from KeyboardInterrupt()
    command = shlex.join(["penstock", *sys.argv[1:]])
    output: Path | None = given["output"]
    if output is not None:
        for path in write_page(outcome, command, output):
            click.echo(f"wrote {path}", err=True)
    show(as_data(outcome, command), given["style"], as_text(outcome))


def quickly(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of --quick in place of those that nobody gave."""
    source = click.get_current_context().get_parameter_source
    left = {name: value for name, value in QUICK.items() if source(name) is ParameterSource.DEFAULT}
    return {**given, **left}


async def _measure(kind: str, targets: list[Target], settings: Settings) -> Outcome:
    task = asyncio.current_task()
    assert task is not None, "it runs in a loop"
    # Whoever ends us wants our topics gone; Ctrl-C cancels this task as well.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    countdown = Countdown()

    def watch(phase: Phase) -> None:
        countdown.begin(phase.words, phase.seconds)

    def warn(words: str) -> None:
        countdown.close()
        click.echo(words, err=True)

    showing = asyncio.create_task(countdown.show())
    try:
        with Crew(settings.clients) as crew:
            return await Course(kind, targets, settings, crew, watch, warn).run()
    finally:
        showing.cancel()
        countdown.close()


def settings_of(given: Mapping[str, Any]) -> Settings:
    """What the options come to; those that a command does not have stay at their defaults."""
    record_bytes: int = given["record_bytes"]
    topic, partitions, replicas = given.get("topic"), given.get("partitions"), given.get("replicas")
    configs = pairs(given.get("configs", ()))
    if topic is not None and (partitions or replicas or configs):
        raise click.UsageError("--partitions, --replicas and --config are for a topic that is made; --topic names one")
    rate = given.get("rate")
    return Settings(
        client=given.get("client", Settings.client),
        seconds=given.get("seconds", Settings.seconds),
        warm_up_s=seconds_of(given["warm_up"], "--warm-up"),
        rounds=given["rounds"],
        clients=given.get("clients", Settings.clients),
        record_bytes=record_bytes,
        batch_bytes=given["batch_bytes"],
        acks=given.get("acks", Settings.acks),
        compression=given["compression"],
        partitions=partitions or Settings.partitions,
        replicas=replicas,
        rate_per_s=None if rate is None else records_per_s(rate, record_bytes),
        topic=topic,
        topic_bytes=given.get("topic_bytes", Settings.topic_bytes),
        configs=configs,
    )


def check(kind: str, settings: Settings) -> None:
    """What makes no sense is told before anybody is asked."""
    if settings.client == RAW and settings.acks == "0":
        raise click.UsageError("--client raw counts acknowledgements, and with --acks 0 there are none")
    if kind == "e2e" and settings.record_bytes < STAMP_BYTES:
        raise click.BadParameter(f"at least {STAMP_BYTES}: a record carries its time", param_hint="--record-bytes")
    divided = kind in ("consume", "e2e") and settings.topic is None and settings.client != RAW
    if divided and settings.clients > settings.partitions:
        raise click.UsageError(
            f"{count('client', settings.clients)} cannot share {count('partition', settings.partitions)};"
            " --partitions makes more"
        )


def seconds_of(text: str, hint: str) -> float:
    try:
        return parse_duration_ms(text) / 1000
    except BadOffset as wrong:
        raise click.BadParameter(str(wrong), param_hint=hint) from None


def records_per_s(text: str, record_bytes: int) -> float:
    found = _RATE.fullmatch(text.replace(",", ""))
    if found is None or float(found["number"]) <= 0:
        raise click.BadParameter(f"{text!r} is no rate: expected something like 5000/s or 5MB/s", param_hint="--rate")
    scale = _BYTES.get(found["unit"].removesuffix("/s"))
    number = float(found["number"])
    return number if scale is None else number * scale / record_bytes


def targets_of(connection: Connection, versus: str | None) -> list[Target]:
    """The address of every command, and the second one with the same settings."""
    for name in connection.given:
        if not known(name):
            raise BadSetting(f"no client has a setting {name!r}")
    targets = [_target(connection, connection.bootstrap, title_of(connection.bootstrap))]
    if versus is not None:
        try:
            parse_bootstrap(versus)
        except ValueError as wrong:
            raise click.BadParameter(str(wrong), param_hint="--versus") from None
        # The same twice shows how much of a ratio is chance.
        title = title_of(versus)
        targets.append(_target(connection, versus, title if title != targets[0].title else f"{title} again"))
    return targets


def title_of(bootstrap: str) -> str:
    """An address as the head of a column: the first of several."""
    first, *others = bootstrap.split(",")
    return f"{first} and {len(others)} more" if others else first


def _target(connection: Connection, bootstrap: str, title: str) -> Target:
    """Settings serve several kinds of clients here, so each takes what it has."""
    shared = connection.towards(bootstrap).beside()
    return Target(
        title,
        bootstrap,
        producer=shared.keywords(ProducerSettings),
        consumer=shared.keywords(ConsumerSettings),
        admin=shared.keywords(AdminSettings),
    )
