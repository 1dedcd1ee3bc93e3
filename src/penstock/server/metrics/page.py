"""Metrics at scrape: sources are asked for their numbers, which are written as Prometheus text.

Names are those that Strimzi's JMX rules and kafka_exporter give to Kafka's metrics, so existing dashboards fit.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from penstock.server.reception.request_metrics import ApiMetrics
from penstock.transport.prometheus import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    SUMMARY,
    head_lines,
    labels_text,
    one_line,
    sample_line,
)

if TYPE_CHECKING:
    from penstock.server.loops.loop_watch import LoopWatch
    from penstock.server.reception.dispatch import Dispatch
    from penstock.server.reception.listener import Listeners
    from penstock.server.reception.logins import Logins
    from penstock.server.reception.reception import Reception

_log = logging.getLogger("penstock.server.metrics")

T = TypeVar("T")

SAMPLES_A_STEP = 100
LINES_A_STEP = 5_000
LOOKS_A_PAUSE = 500
"""How many things a source may look at without a sample before it yields PAUSE."""
SERIES_MAX = 10_000
"""How many partitions, topics, groups and offsets of groups have series of their own on one page."""
SOFTWARES_MAX = 20
"""How many kinds of clients have series of their own; each says what it likes of itself."""
UNKNOWN = "unknown"
_QUANTILES = (0.5, 0.95, 0.99, 0.999)


class Sample(NamedTuple):
    """One number. `name` may carry a suffix (`_count`, `_sum`) of the metric that `type` and `help` describe."""

    name: str
    labels: dict[str, str]
    value: float
    type: str
    help: str


class Told(NamedTuple):
    """One of several metrics about the same kind of thing."""

    name: str
    type: str
    help: str


class Row(NamedTuple):
    """Several numbers about one thing, in the order of `metrics`: thousands of partitions are told of this way.

    `metrics` is a constant: what is found out about it once holds for every row.
    """

    labels: dict[str, str]
    metrics: tuple[Told, ...]
    values: tuple[float, ...]


PAUSE = None
"""What a source yields when it has counted for a while and has no sample yet."""

Telling: TypeAlias = Sample | Row | None
Families: TypeAlias = dict[str, list[str]]
"""The lines of each metric; its description comes first."""
Source: TypeAlias = Callable[[], Iterable[Telling | tuple[str, dict[str, str], float, str, str]]]


def counted(things: Iterable[T]) -> Iterator[T | None]:
    """The things one by one, and a PAUSE every now and then."""
    for count, thing in enumerate(things, start=1):
        yield thing
        if not count % LOOKS_A_PAUSE:
            yield PAUSE


class Metrics:
    """The sources of one node. A source that fails is left out of the page and named on it.

    A source is asked bit by bit, and what it tells of may change meanwhile: it walks over copies of tables.
    """

    __slots__ = ("_preparations", "_sources")

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._preparations: dict[str, Callable[[], Awaitable[None]]] = {}

    def register(self, name: str, source: Source, prepare: Callable[[], Awaitable[None]] | None = None) -> None:
        """`source` yields samples; `name` is only for its own failures. `prepare` may ask others, within a bound."""
        self._sources[name] = source
        if prepare is not None:
            self._preparations[name] = prepare

    async def prepared(self) -> None:
        """Lets sources find out what this node does not know by itself. What they cannot is missing on the page."""
        for name, prepare in self._preparations.items():
            try:
                await prepare()
            except Exception:  # a page without these numbers is better than none
                _log.exception("the metrics of %s could not be prepared", name)

    def page(self) -> str:
        """The whole page at once."""
        making = self.making()
        while True:
            try:
                next(making)
            except StopIteration as done:
                return b"".join(done.value).decode()

    def making(self) -> Generator[None, None, list[bytes]]:
        """Makes the page in the text format 0.0.4, in pieces; samples of one metric stand together.

        Every few samples it is a good moment to turn to something else: with thousands of partitions a page takes
        longer than anybody should wait for the loop.
        """
        return (yield from written((yield from self.gathering())))

    def gathering(self) -> Generator[None, None, Families]:
        """Asks every source; what they tell, for `written`."""
        families: Families = {}
        for source_name, source in self._sources.items():
            try:
                yield from _asked(source, families)
            except Exception as failure:  # one broken source must not hide all the others
                families[f" {source_name}"] = [f"# {source_name} failed: {one_line(repr(failure))}"]
        return families


def together(families: Families, others: Families) -> Families:
    """What two gatherings told; a metric that both know is described once."""
    for name, lines in others.items():
        known = families.get(name)
        if known is None:
            families[name] = lines
        else:
            known += [line for line in lines if not line.startswith("#")]
    return families


def written(families: Families) -> Generator[None, None, list[bytes]]:
    """The page of what was gathered, in pieces."""
    parts = []
    for name in list(families):
        # Taken out one by one: a hundred thousand lines are not let go of in one go either.
        lines = families.pop(name)
        for start in range(0, len(lines), LINES_A_STEP):
            parts.append(("\n".join(lines[start : start + LINES_A_STEP]) + "\n").encode())
            yield
    return parts


def _asked(source: Source, families: dict[str, list[str]]) -> Iterator[None]:
    """Writes down what a source tells."""
    known: dict[str, str] | None = None
    tables: dict[int, list[tuple[str, list[str]]]] = {}
    shown, count = "", 0
    for told in source():
        if told is PAUSE:
            yield
            continue
        labels = told[0] if isinstance(told, Row) else told[1]
        if labels is not known:
            # Several numbers about the same thing come one after the other, with the same labels.
            known, shown = labels, labels_text(labels)
        if isinstance(told, Row):
            columns = tables.get(id(told.metrics))
            if columns is None:
                columns = tables[id(told.metrics)] = [(each.name, _lines_of(families, *each)) for each in told.metrics]
            for (name, lines), value in zip(columns, told.values, strict=True):
                lines.append(f"{name}{shown} {value}" if value.__class__ is int else sample_line(name, shown, value))
            count += len(columns)
        else:
            name, _, value, kind, words = told
            _lines_of(families, name, kind, words).append(sample_line(name, shown, value))
            count += 1
        if count >= SAMPLES_A_STEP:
            count = 0
            yield


def _lines_of(families: dict[str, list[str]], name: str, kind: str, words: str) -> list[str]:
    """The lines of the family that a metric belongs to; the first of its samples describes it."""
    lines = families.get(name)
    if lines is None:
        family = _family(name, kind)
        lines = families.get(family)
        if lines is None:
            lines = families[family] = head_lines(family, kind, words)
    return lines


def _family(name: str, kind: str) -> str:
    if kind in (SUMMARY, HISTOGRAM):
        for suffix in ("_count", "_sum", "_bucket"):
            if name.endswith(suffix):
                return name.removesuffix(suffix)
    return name


def request_samples(*served: Dispatch) -> Iterator[Sample]:
    """Kafka's RequestMetrics, over all kinds of listeners."""
    prefix = "kafka_network_requestmetrics_"
    counts: dict[tuple[str, int], int] = {}
    for dispatch in served:
        for route in list(dispatch.routes.values()):
            key = route.api.name, route.version
            counts[key] = counts.get(key, 0) + route.requests
    for (name, version), requests in counts.items():
        labels = {"request": name, "version": str(version)}
        yield Sample(prefix + "requests_total", labels, requests, COUNTER, "Requests by API and version")
    by_api: dict[int, ApiMetrics] = {}
    for metrics in [each for dispatch in served for each in list(dispatch.metrics.values())]:
        by_api.setdefault(metrics.key, ApiMetrics(metrics.key, metrics.name)).add(metrics)
    for metrics in by_api.values():
        labels = {"request": metrics.name}
        yield Sample(prefix + "requestbytes_total", labels, metrics.request_bytes, COUNTER, "Bytes of requests")
        yield Sample(prefix + "responsebytes_total", labels, metrics.response_bytes, COUNTER, "Bytes of replies")
        yield Sample(
            prefix + "errors_total", labels, metrics.errors, COUNTER, "Replies with an error code of their own"
        )
        yield Sample(
            prefix + "unexpected_total", labels, metrics.unexpected, COUNTER, "Requests that failed in our code"
        )
        queued_ms = round(metrics.queued_ms, 3)
        yield Sample(
            prefix + "requestqueuetimems_sum", labels, queued_ms, COUNTER, "Time behind requests of the same connection"
        )
        name, words = prefix + "totaltimems", "Time from the last byte of a request to its reply"
        for share in _QUANTILES:
            quantile = {**labels, "quantile": str(share)}
            yield Sample(name, quantile, metrics.total.quantile(share), SUMMARY, words)
        yield Sample(name + "_sum", labels, round(metrics.total.sum_ms, 3), SUMMARY, words)
        yield Sample(name + "_count", labels, metrics.total.count, SUMMARY, words)


def connection_samples(listeners: Listeners, *receptions: Reception) -> Iterator[Sample]:
    """Kafka's socket-server metrics, over all kinds of listeners."""
    prefix = "kafka_server_socket_server_metrics_"
    standing: dict[str, int] = {}
    softwares: Counter[tuple[str, str, str]] = Counter()
    for reception in receptions:
        for connection in list(reception.connections):
            standing[connection.listener.name] = standing.get(connection.listener.name, 0) + 1
            name, version = connection.software
            softwares[connection.listener.name, name or UNKNOWN, version or UNKNOWN] += 1
    for listener in listeners:
        labels = {"listener": listener.info.name}
        count = standing.get(listener.info.name, 0)
        yield Sample(prefix + "connection_count", labels, count, GAUGE, "Connections that stand")
        yield Sample(prefix + "connection_creation_total", labels, listener.accepted, COUNTER, "Connections accepted")
        if listener.entrance is not None and listener.entrance.logins is not None:
            yield from login_samples(labels, listener.entrance.logins)
    yield from software_samples(softwares)
    closed = sum(each.closed for each in receptions)
    refused = sum(each.refused for each in receptions)
    malformed = sum(each.malformed for each in receptions)
    yield Sample(prefix + "connection_close_total", {}, closed, COUNTER, "Connections closed")
    yield Sample(prefix + "connection_refused_total", {}, refused, COUNTER, "Connections over a limit")
    yield Sample(prefix + "malformed_total", {}, malformed, COUNTER, "Connections closed for what they sent")
    network = "kafka_network_socketserver_"
    expired = sum(each.wheel.expired for each in receptions) + sum(
        each.entrance.logins.expired
        for each in listeners
        if each.entrance is not None and each.entrance.logins is not None
    )
    held_bytes = sum(each.intake.held_bytes for each in receptions)
    yield Sample(
        network + "expiredconnectionskilledcount",
        {},
        expired,
        COUNTER,
        "Connections closed as idle, or because their session ended",
    )
    yield Sample(network + "memorypoolused", {}, held_bytes, GAUGE, "Bytes of requests in memory")
    intake = receptions[0].intake  # that of clients, where there are any
    if intake.budget_bytes > 0:
        left = intake.budget_bytes - intake.held_bytes
        yield Sample(network + "memorypoolavailable", {}, left, GAUGE, "Bytes left of queued.max.request.bytes")


def software_samples(softwares: Counter[tuple[str, str, str]]) -> Iterator[Sample]:
    """Connections by (listener, name, version). Clients say what they are, so all but the most frequent are one."""
    told = softwares.most_common(SOFTWARES_MAX)
    others = softwares.total() - sum(count for _, count in told)
    if others:
        told.append((("", "other", UNKNOWN), others))  # no listener is called so, and no client can be here twice
    for (listener, name, version), count in told:
        labels = {"listener": listener, "clientSoftwareName": name, "clientSoftwareVersion": version}
        metric, words = "kafka_server_socket_server_metrics_connections", "Connections that stand, by what clients are"
        yield Sample(metric, labels, count, GAUGE, words)


def login_samples(labels: dict[str, str], logins: Logins) -> Iterator[Sample]:
    """The logins of one listener."""
    prefix = "kafka_server_socket_server_metrics_"
    words = "Logins that were good, by mechanism"
    for mechanism, count in logins.succeeded.items():
        by = {**labels, "mechanism": mechanism}
        yield Sample(prefix + "successful_authentication_total", by, count, COUNTER, words)
    words = "Logins that failed, by mechanism; none is for those who got to no mechanism"
    for mechanism, count in logins.failed.items():
        by = {**labels, "mechanism": mechanism}
        yield Sample(prefix + "failed_authentication_total", by, count, COUNTER, words)
    renewed, not_renewed = logins.renewed, logins.not_renewed
    yield Sample(prefix + "successful_reauthentication_total", labels, renewed, COUNTER, "Logins that were renewed")
    yield Sample(prefix + "failed_reauthentication_total", labels, not_renewed, COUNTER, "Logins whose renewal failed")


def loop_samples(watch: LoopWatch) -> Iterator[Sample]:
    """How late the event loop that serves clients runs."""
    return _lateness("penstock_loop", "the loop", watch)


def control_loop_samples(watch: LoopWatch) -> Iterator[Sample]:
    """The same of the loop that votes and heartbeats, where it has one of its own."""
    return _lateness("penstock_control_loop", "the control loop", watch)


def _lateness(name: str, loop: str, watch: LoopWatch) -> Iterator[Sample]:
    lag, words = name + "_lag_ms", f"How late {loop}'s timer fired"
    for share in _QUANTILES:
        yield Sample(lag, {"quantile": str(share)}, watch.lag.quantile(share), SUMMARY, words)
    yield Sample(lag + "_sum", {}, round(watch.lag.sum_ms, 3), SUMMARY, words)
    yield Sample(lag + "_count", {}, watch.lag.count, SUMMARY, words)
    yield Sample(name + "_lag_max_ms", {}, round(watch.lag.max_ms, 3), GAUGE, f"The longest delay of {loop} so far")
    held = f"The same without the time in which {loop} got no processor"
    yield Sample(name + "_held_max_ms", {}, round(watch.held_max_ms, 3), GAUGE, held)
    yield Sample(name + "_stalls_total", {}, watch.stalls, COUNTER, f"Times {loop} was held over 100 ms")
    starved = f"Times {loop} got no processor for over 100 ms"
    yield Sample(name + "_starved_total", {}, watch.starved, COUNTER, starved)
