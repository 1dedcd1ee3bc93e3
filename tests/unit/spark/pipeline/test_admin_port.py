"""The admin port tells what the home of a pipeline says, and what nobody knows has no number."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.processes import birth_of
from penstock.spark.pipeline import home
from penstock.spark.pipeline.admin_port import AdminPort, CannotListen
from penstock.spark.pipeline.home import Home, Progress, SinkProgress, State
from penstock.spark.pipeline.metrics import SINKS_MAX, names, page, watermark_s
from penstock.spark.progress.records import ExpectationCount

STATE = State("shop", home.RUNNING, 1, "b", "h", "/p.toml", "d", "local", "b:1", "/lake", 1, since_ms=1_000, restarts=2)
NEVER = SinkProgress("new", "topic", "out", "waiting", "shop-new")
SINK = replace(
    NEVER, sink="lake", state="running", batch_id=7, rows=12, lag=4, batch_ms=1_500, at_ms=3_000, state_rows=5,
    state_bytes=640, late_rows=3, waiting_since_ms=2_000, fresh_within_s=30.0, watermark="2026-11-01T10:00:00.000Z",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Home:
    import os

    made = Home("shop", tmp_path)
    made.write_state(replace(STATE, pid=os.getpid(), born=birth_of(os.getpid())))
    made.write_progress(Progress(1, home.RUNNING, (replace(SINK, waiting_since_ms=0, lag=0),)))
    return made


@pytest.fixture
def port(place: Home) -> Iterator[AdminPort]:
    opened = AdminPort(place, "127.0.0.1:0")
    yield opened
    opened.close()


def asked(port: AdminPort, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{port.address}{path}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_every_metric_is_explained_once_and_what_is_not_known_is_not_told() -> None:
    text = page(STATE, Progress(1, home.RUNNING, (SINK, NEVER)), 5_000)
    assert re.findall(r"^# TYPE (\S+)", text, re.M) == names()
    assert re.findall(r"^# HELP (\S+) \S", text, re.M) == names()
    ruled = replace(SINK, expectations=(ExpectationCount("orders", "small", 16, 3),))
    of_rules = page(STATE, Progress(1, home.RUNNING, (ruled, NEVER)), 5_000).splitlines()
    labels = '{pipeline="shop",sink="lake",of="orders",expectation="small"}'
    assert f"penstock_pipeline_expectation_rows_total{labels} 16" in of_rules
    assert f"penstock_pipeline_expectation_broken_total{labels} 3" in of_rules
    lines = text.splitlines()
    for line in (
        'penstock_pipeline_running{pipeline="shop"} 1',
        'penstock_pipeline_state_seconds{pipeline="shop"} 4',
        'penstock_pipeline_restarts_total{pipeline="shop"} 2',
        'penstock_pipeline_freshness_seconds{pipeline="shop",sink="lake"} 3',
        'penstock_pipeline_fresh_within_seconds{pipeline="shop",sink="lake"} 30',
        'penstock_pipeline_lag_records{pipeline="shop",sink="lake"} 4',
        'penstock_pipeline_batch_seconds{pipeline="shop",sink="lake"} 1.5',
        'penstock_pipeline_late_rows_total{pipeline="shop",sink="lake"} 3',
        'penstock_pipeline_state_rows{pipeline="shop",sink="lake"} 5',
        'penstock_pipeline_state_bytes{pipeline="shop",sink="lake"} 640',
        'penstock_pipeline_watermark_timestamp_seconds{pipeline="shop",sink="lake"} 1793527200',
        'penstock_pipeline_sink_running{pipeline="shop",sink="new"} 0',
    ):
        assert line in lines
    of_new = [line.partition("{")[0] for line in lines if 'sink="new"' in line]
    assert "penstock_pipeline_freshness_seconds" not in of_new
    assert "penstock_pipeline_lag_records" not in of_new


def test_a_page_is_bounded_and_counts_what_it_leaves_out() -> None:
    many = tuple(replace(SINK, sink=f"s{number}") for number in range(SINKS_MAX + 5))
    text = page(STATE, Progress(1, home.RUNNING, many), 5_000)
    assert len(re.findall(r"^penstock_pipeline_rows_total\{", text, re.M)) == SINKS_MAX
    assert 'penstock_pipeline_left_out{pipeline="shop"} 5' in text


def test_a_watermark_that_is_none_is_none() -> None:
    assert (watermark_s(""), watermark_s("1970-01-01T00:00:00.000Z"), watermark_s("soon")) == (None, None, None)


def test_the_port_tells_metrics_health_and_status(port: AdminPort, place: Home) -> None:
    status, text = asked(port, "/metrics")
    assert (status, 'penstock_pipeline_running{pipeline="shop"} 1' in text) == (200, True)
    assert asked(port, "/healthz") == (200, '{"status": "healthy", "reasons": []}')
    assert asked(port, "/readyz")[0] == 200
    assert json.loads(asked(port, "/status")[1])["sinks"][0]["sink"] == "lake"
    assert asked(port, "/elsewhere")[0] == 404
    assert asked(port, "/metrics?x=1")[0] == 200


def test_a_promise_that_is_missed_makes_it_not_ready_and_a_sink_that_failed_not_healthy(
    port: AdminPort, place: Home
) -> None:
    place.write_progress(Progress(1, home.RUNNING, (SINK,)))
    status, text = asked(port, "/readyz")
    assert (status, asked(port, "/healthz")[0]) == (503, 200)
    assert "sink lake: 4 records wait for it" in text
    place.write_progress(Progress(1, home.RUNNING, (replace(SINK, state="failed", error="disk full"),)))
    assert asked(port, "/healthz") == (503, '{"status": "not healthy", "reasons": ["sink lake: disk full"]}')


def test_a_port_that_is_taken_is_told_by_its_key(port: AdminPort, place: Home) -> None:
    with pytest.raises(CannotListen, match=f'admin = "{port.address}": Address already in use'):
        AdminPort(place, port.address)
