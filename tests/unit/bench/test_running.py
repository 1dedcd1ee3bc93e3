"""What the options of `penstock bench` come to."""

from __future__ import annotations

import asyncio
import importlib.util

import click
import pytest

from penstock.bench.course import Course
from penstock.bench.crew import Crew
from penstock.bench.jobs import Moved
from penstock.bench.settings import Settings
from penstock.bench.spark_client import check_installed
from penstock.bench.targets import Target
from penstock.bench.telling import as_text
from penstock.cli.bench_running import check, records_per_s, targets_of, title_of
from penstock.cli.connection import Connection
from penstock.spark.errors import Missing


@pytest.mark.parametrize(
    ("text", "expected"), [("500", 500), ("5,000/s", 5_000), ("2MB/s", 20_000), ("50kB", 500), ("0.5/s", 0.5)]
)
def test_a_rate_is_of_records_or_of_bytes(text: str, expected: float) -> None:
    assert records_per_s(text, record_bytes=100) == expected


@pytest.mark.parametrize("text", ["", "fast", "0", "-5", "5GB/s", "1e3"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no rate"):
        records_per_s(text, record_bytes=100)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("produce", Settings(client="raw", acks="0")),
        ("e2e", Settings(record_bytes=8)),
        ("consume", Settings(clients=5, partitions=4)),
    ],
)
def test_what_makes_no_sense_is_told_before_anybody_is_asked(kind: str, settings: Settings) -> None:
    with pytest.raises(click.UsageError):
        check(kind, settings)


def test_settings_go_to_the_clients_that_have_them_at_both_addresses() -> None:
    first, second = targets_of(Connection("h:1", {"linger.ms": "7", "fetch.min.bytes": "9"}), "h:2")
    assert (first.producer["bootstrap_servers"], second.producer["bootstrap_servers"]) == ("h:1", "h:2")
    for target in (first, second):
        assert target.producer["linger_ms"] == "7"
        assert target.consumer["fetch_min_bytes"] == "9"
        assert "linger_ms" not in target.admin


def test_an_address_may_be_measured_against_itself() -> None:
    assert [target.title for target in targets_of(Connection("h:1"), "h:1")] == ["h:1", "h:1 again"]
    assert title_of("a:1,b:2,c:3") == "a:1 and 2 more"


def test_what_spark_lacks_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(Missing, match=r"needs pyspark and pyarrow: pip install 'penstock\[spark\]'"):
        check_installed()


def course(settings: Settings) -> Course:
    target = Target("h:1", "h:1", {"bootstrap_servers": "h:1"}, {}, {})
    made = Course("produce", [target], settings, Crew(0), lambda _: None, lambda _: None)
    made.outcome.facts["h:1"] = {"brokers": "1", "broker": "Penstock"}
    return made


def test_rounds_are_interleaved_and_the_warm_up_is_in_no_figure() -> None:
    """Two addresses take turns; what the warm-up moved is only counted as thrown away."""
    targets = [Target(name, name, {"bootstrap_servers": name}, {}, {}) for name in ("h:1", "h:2")]
    made = Course("produce", targets, Settings(rounds=2), Crew(0), lambda _: None, lambda _: None)
    turns = []

    async def measure(target: Target, seconds: float) -> list[Moved]:
        turns.append(target.title)
        # Two clients: the slower one sets the time.
        each = 100.0 if len(turns) <= 2 else {"h:1": 20.0, "h:2": 10.0}[target.title]
        return [Moved(1.0, int(each), 10), Moved(2.0, int(each), 10)]

    asyncio.run(made._rounds([("produce", measure)]))
    assert turns == ["h:1", "h:2"] * 3
    assert made.outcome.thrown_away == {
        "h:1": {"seconds": 2.0, "records": 200},
        "h:2": {"seconds": 2.0, "records": 200},
    }
    records = made.outcome.results.series["produce", "records"]
    assert records.samples == {"h:1": [20.0, 20.0], "h:2": [10.0, 10.0]}
    assert records.ratio() == 2.0


def test_a_busy_client_is_told_because_the_figure_may_be_its_own() -> None:
    made = course(Settings(seconds=1))
    made._add("produce", made.outcome.targets[0], [Moved(1.0, 10, 10, cpu_s=0.2)])
    assert made.outcome.remarks == []
    made._add("produce", made.outcome.targets[0], [Moved(1.0, 10, 10, cpu_s=0.95)])
    assert "The client used nearly all of a core" in as_text(made.outcome)
