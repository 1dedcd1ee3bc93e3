"""The metrics page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.server.loops.timing import Timing
from penstock.server.metrics.page import (
    LOOKS_A_PAUSE,
    PAUSE,
    SAMPLES_A_STEP,
    SOFTWARES_MAX,
    UNKNOWN,
    Metrics,
    Row,
    Sample,
    Told,
    connection_samples,
    counted,
    loop_samples,
    request_samples,
    software_samples,
)
from penstock.transport.prometheus import COUNTER, GAUGE
from tests.unit.server.served import on_loop, serving
from tests.walks.prometheus_text import Family, Found, families


def test_samples_of_one_metric_stand_together_and_labels_are_quoted() -> None:
    metrics = Metrics()
    metrics.register("a", lambda: [("size", {"topic": 'a"b\\c\nd'}, 1, GAUGE, "Sizes"), ("n", {}, 2.5, COUNTER, "N")])
    metrics.register("b", lambda: [("size", {"topic": "x"}, float("inf"), GAUGE, "Sizes")])
    assert metrics.page().splitlines() == [
        "# HELP size Sizes",
        "# TYPE size gauge",
        'size{topic="a\\"b\\\\c\\nd"} 1',
        'size{topic="x"} +Inf',
        "# HELP n N",
        "# TYPE n counter",
        "n 2.5",
    ]


def test_a_source_that_fails_does_not_hide_the_others() -> None:
    metrics = Metrics()
    metrics.register("broken", lambda: [("x", {}, 1 // 0, GAUGE, "")])
    metrics.register("fine", lambda: [("y", {}, 1, GAUGE, "Y")])
    page = metrics.page()
    assert "# broken failed: ZeroDivisionError" in page
    assert "y 1\n" in page


def test_a_summary_has_one_description() -> None:
    timing = Timing()
    timing.observe(3.0)
    metrics = Metrics()
    metrics.register("loop", lambda: loop_samples(SimpleNamespace(lag=timing, stalls=0)))  # type: ignore[arg-type]
    page = metrics.page()
    assert page.count("# TYPE penstock_loop_lag_ms summary") == 1
    assert "penstock_loop_lag_ms_count 1" in page
    assert 'penstock_loop_lag_ms{quantile="0.5"} 3.0' in page


@on_loop
async def test_requests_and_connections_are_counted() -> None:
    async with serving({"Heartbeat": lambda _ctx, _request: HeartbeatResponse(error_code=27)}) as world:
        client = await world.client()
        for version in (3, 4, 4):
            await client.ask(HeartbeatRequest(), version)
            await client.frame()
        metrics = Metrics()
        metrics.register("requests", lambda: request_samples(world.dispatch))
        metrics.register("connections", lambda: connection_samples(world.listeners, world.reception))
        page = metrics.page()
    for line in (
        'kafka_network_requestmetrics_requests_total{request="Heartbeat",version="3"} 1',
        'kafka_network_requestmetrics_requests_total{request="Heartbeat",version="4"} 2',
        'kafka_network_requestmetrics_errors_total{request="Heartbeat"} 3',
        'kafka_network_requestmetrics_totaltimems_count{request="Heartbeat"} 3',
        'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"} 1',
        'kafka_server_socket_server_metrics_connection_creation_total{listener="PLAINTEXT"} 1',
        'kafka_server_socket_server_metrics_connections{listener="PLAINTEXT",clientSoftwareName="unknown",'
        'clientSoftwareVersion="unknown"} 1',
        "kafka_network_socketserver_memorypoolused 0",
    ):
        assert line in page.splitlines()


def test_clients_that_invent_names_share_one_series() -> None:
    """A client that calls itself what we call those without a name is one of them: no series is there twice."""

    def connection(name: str, version: str) -> SimpleNamespace:
        return SimpleNamespace(listener=SimpleNamespace(name="CLIENTS"), software=(name, version))

    invented = [connection(f"x{number}", "1") for number in range(500)]
    standing = [connection("java", "4.3.1")] * 3 + [connection("", ""), connection("unknown", "unknown"), *invented]
    softwares = Counter(
        (each.listener.name, each.software[0] or UNKNOWN, each.software[1] or UNKNOWN) for each in standing
    )
    found = {tuple(each.labels.values()): each.value for each in software_samples(softwares)}
    assert len(found) == len(list(software_samples(softwares))) == SOFTWARES_MAX + 1
    assert (found["CLIENTS", "java", "4.3.1"], found["CLIENTS", "unknown", "unknown"]) == (3, 2)
    assert found["", "other", "unknown"] == 500 - SOFTWARES_MAX + 2


def test_a_page_is_made_in_steps_and_comes_out_the_same() -> None:
    def many() -> Iterator[Sample]:
        for number in range(SAMPLES_A_STEP * 3):
            labels = {"partition": str(number)}
            yield Sample("offset", labels, number, GAUGE, "End")
            yield Sample("size", labels, number * 2, GAUGE, "Bytes")

    metrics = Metrics()
    metrics.register("partitions", many)
    making = metrics.making()
    steps = 0
    while True:
        try:
            next(making)
        except StopIteration as done:
            page = b"".join(done.value).decode()
            break
        steps += 1
    assert steps == 6 + 2, "the samples, then the text of each metric"
    assert page == metrics.page()
    assert page.splitlines()[2:5] == [f'offset{{partition="{number}"}} {number}' for number in range(3)]
    assert page.splitlines()[-1] == 'size{partition="299"} 598'


def test_a_row_tells_several_metrics_of_one_thing() -> None:
    table = (Told("size", GAUGE, "Bytes"), Told("age", GAUGE, "Seconds"))

    def rows() -> Iterator[Row | None]:
        yield Row({"topic": "a"}, table, (1, 2.5))
        yield PAUSE
        yield Row({"topic": "b"}, table, (3, 4))

    metrics = Metrics()
    metrics.register("rows", rows)
    assert families(metrics.page()) == {
        "size": Family("size", GAUGE, "Bytes", [Found("size", {"topic": "a"}, 1), Found("size", {"topic": "b"}, 3)]),
        "age": Family("age", GAUGE, "Seconds", [Found("age", {"topic": "a"}, 2.5), Found("age", {"topic": "b"}, 4)]),
    }


def test_a_source_that_only_counts_pauses_now_and_then() -> None:
    seen = list(counted(range(LOOKS_A_PAUSE * 2 + 1)))
    assert (seen.count(PAUSE), len(seen)) == (2, LOOKS_A_PAUSE * 2 + 3)


@on_loop
async def test_a_preparation_that_fails_costs_no_page(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise ZeroDivisionError("no idea")

    metrics = Metrics()
    metrics.register("y", lambda: [("y", {}, 1, GAUGE, "Y")], broken)
    await metrics.prepared()
    assert "y 1\n" in metrics.page()
    assert "ZeroDivisionError" in caplog.text
