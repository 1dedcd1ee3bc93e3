"""A run in words, as data, and as a page with plots: who measured what, with which settings, and what came out."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.bench import report
from penstock.bench.course import Outcome
from penstock.bench.latency import QUANTILES, slower_than
from penstock.bench.plot import line_chart
from penstock.bench.series import Series
from penstock.bench.settings import RAW, Settings
from penstock.model.version import VERSION

FORMAT_VERSION = 1
"""Of the JSON; raised when something in it changes its meaning."""

_CLIENT_WORDS = {
    ("own", "produce"): "send_batch; at a rate send",
    ("own", "consume"): "poll, checksums checked",
    ("own", "e2e"): "send and poll in one process",
    ("own", "cluster"): "send_batch; at a rate send",
    (RAW, "produce"): "requests encoded before, 5 in flight on a connection to each partition's leader",
    (RAW, "cluster"): "requests encoded before, 5 in flight on a connection to each partition's leader",
    (RAW, "consume"): "one request at a time, only headers of batches looked at",
}


def client_words(outcome: Outcome) -> str:
    version = f"Penstock {VERSION}"
    if outcome.kind == "spark":
        from importlib import metadata

        return f'{version}, format("penstock") of Spark {metadata.version("pyspark")}, local[*]'
    own = "client library" if outcome.settings.client != RAW else "raw client"
    return f"{version}, {own} ({_CLIENT_WORDS[outcome.settings.client, outcome.kind]})"


def machine() -> dict[str, str]:
    """Where the client ran; the broker may be elsewhere."""
    from penstock.kernels import IMPLEMENTATION

    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores, {len(os.sched_getaffinity(0))} of them ours",
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "kernel": platform.release(),
        "Python": f"{platform.python_version()}, kernels {IMPLEMENTATION}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def parameters(outcome: Outcome) -> dict[str, object]:
    """The settings that this kind of run has a use for, by the names of their options."""
    settings = outcome.settings
    found: dict[str, object] = {"rounds": settings.rounds, "warm-up s": settings.warm_up_s}
    if outcome.kind != "spark":
        found |= {"seconds": settings.seconds, "clients": f"{settings.clients} (processes)"}
    found |= {"record bytes": settings.record_bytes}
    if outcome.kind in ("consume", "spark"):
        found |= {"topic bytes": settings.topic_bytes}
    found |= {"batch bytes": settings.batch_bytes, "compression": settings.compression}
    if outcome.kind in ("produce", "e2e", "cluster"):
        found |= {"acks": settings.acks, "rate": _rate(settings)}
    if outcome.kind in ("produce", "e2e", "cluster") and settings.client != RAW:
        found |= {"linger ms": _linger(outcome)}
    if settings.configs:
        found |= {"topic configs": ", ".join(f"{name}={value}" for name, value in settings.configs.items())}
    return found


def _rate(settings: Settings) -> str:
    return "as fast as it goes" if settings.rate_per_s is None else f"{settings.rate_per_s:,.0f} records/s"


def _linger(outcome: Outcome) -> object:
    from penstock.client.settings import ProducerSettings

    given = outcome.targets[0].producer
    at_full_speed = ProducerSettings.of(dict(given)).linger_ms
    at_a_rate = given.get("linger_ms", 0)
    if outcome.kind == "cluster":
        return f"{at_full_speed}, at the rate {at_a_rate}"
    return at_full_speed if outcome.kind == "produce" and outcome.settings.rate_per_s is None else at_a_rate


def as_data(outcome: Outcome, command: str) -> dict[str, Any]:
    """For programs: every sample, and all that one must know to judge it."""
    return {
        "format": FORMAT_VERSION,
        "kind": outcome.kind,
        "command": command,
        "client": client_words(outcome),
        "machine": machine(),
        "settings": parameters(outcome),
        "targets": outcome.facts,
        "thrown_away": outcome.thrown_away,
        "latencies_counted": outcome.counts,
        "series": [series.to_json() for series in outcome.results.series.values()],
        "remarks": outcome.remarks,
    }


def as_text(outcome: Outcome) -> str:
    """For people at a terminal."""
    lines = [f"client    {client_words(outcome)}", f"machine   {machine()['processor']}"]
    for title, facts in outcome.facts.items():
        lines.append(f"address   {title}: {sentence(facts)}")
    lines.append("with      " + ", ".join(f"{name} {value}" for name, value in parameters(outcome).items()))
    lines += [f"          {words}" for words in _thrown_away(outcome)]
    lines.append(report.terminal(outcome.results, {target.title: target.title for target in outcome.targets}))
    if outcome.remarks:
        lines += ["", *outcome.remarks]
    return "\n".join(lines)


def sentence(facts: Mapping[str, str]) -> str:
    """What a broker says of itself, in one line."""
    version = f", metadata.version {facts['metadata.version']}" if "metadata.version" in facts else ""
    count = f"{facts['brokers']} broker" + ("" if facts["brokers"] == "1" else "s")
    rest = "; ".join(facts[name] for name in ("topic", "disk") if name in facts)
    return f"{facts['broker']}{version}, {count}; {rest}"


def _thrown_away(outcome: Outcome) -> list[str]:
    return [
        f"thrown away as warm-up of {title}: {thrown['records']:,.0f} records in {thrown['seconds']:.1f} s"
        for title, thrown in outcome.thrown_away.items()
    ]


def write_page(outcome: Outcome, command: str, file: Path) -> list[Path]:
    """The page, and its plots beside it: ratios if there is a rival, latencies by quantile, figures by round."""
    titles = {target.title: target.title for target in outcome.targets}
    page = report.Page(
        suite=file.stem,
        title=f"penstock bench {outcome.kind}: {' beside '.join(titles)}",
        command=command,
        introduction=[
            *(f"- `{title}`: {sentence(facts)}" for title, facts in outcome.facts.items()),
            f"- Client: {client_words(outcome)}; the same for all.",
            *(f"- {words[0].upper()}{words[1:]}" for words in _thrown_away(outcome)),
            "",
            "A figure is the median of the rounds, with the lowest and highest in brackets; a ratio above 1 means that"
            " the first address is ahead.",
        ],
        machine=machine(),
        parameters=parameters(outcome),
        remarks=outcome.remarks,
        titles=titles,
    )
    written = report.write_page(page, outcome.results, file)
    text = file.read_text()
    for number, (group, series) in enumerate(outcome.results.groups().items(), start=1):
        plot = file.with_name(f"{file.stem}-{number}.svg")
        plot.write_text(_plot(outcome, group, series))
        written.append(plot)
        heading = f"## {group[0].upper()}{group[1:]}\n"
        text = text.replace(heading, f"{heading}\n![{group}]({plot.name})\n", 1)
    file.write_text(text)
    return written


def _plot(outcome: Outcome, group: str, series: list[Series]) -> str:
    by_name = {each.name: each for each in series}
    titles = [target.title for target in outcome.targets]
    if group in outcome.counts:
        count = max(1, outcome.counts[group] // (len(titles) * outcome.settings.rounds))
        lines = {
            title: [(slower_than(name, count), by_name[name].median(title) or 0.0) for name in QUANTILES]
            for title in titles
        }
        return line_chart(
            f"Latency: {group}",
            lines,
            x_label="one record in so many is slower",
            y_label="ms",
            log_x=True,
            log_y=True,
        )
    rate = next(iter(series))
    lines = {title: [(float(at), value) for at, value in enumerate(rate.samples[title], 1)] for title in titles}
    return line_chart(f"{group[0].upper()}{group[1:]} by round", lines, x_label="round", y_label=rate.unit)
