"""What people see of an agent: rates of counters, sentences, lines, JSON and a live table."""

from __future__ import annotations

import io
import json

from penstock.agent.admin.snapshot import InputSnapshot, Snapshot
from penstock.agent.view.numbers import bar, megabytes, rate, trend
from penstock.agent.view.rates import Rate, Rates
from penstock.agent.view.sentences import description, input_sentence, summary
from penstock.agent.view.views import JsonLines, Lines, Silence, short, view_for


def agent(events: int = 0, **more: int) -> Snapshot:
    inputs = {"access": InputSnapshot("tail", state="running", events=events, bytes=events * 100, **more)}
    return Snapshot("web-1", state="running", bootstrap="b:9092", brokers_up=True, up_s=65.0, inputs=inputs)


def test_rates_and_bars() -> None:
    assert [rate(value) for value in (0, 0.42, 12, 12_345.6)] == ["0", "0.4", "12", "12,346"]
    assert megabytes(1_840_000) == "1.8"
    assert (trend([0, 1, 2]), trend([0, 0])) == ("▁▄█", "▁▁")
    assert [len(full) for full, _ in (bar(0, 10, 8), bar(1, 10_000, 8), bar(10, 10, 8), bar(20, 10, 8))] == [0, 1, 8, 8]


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rates = Rates()
    found = [rates.feed(agent(events).inputs, now_s)["access"] for now_s, events in ((0, 0), (1, 100), (2, 200))]
    assert [each.events_per_s for each in found] == [0, 100, 100]
    assert found[-1].bytes_per_s == 10_000
    found += [rates.feed(agent(200).inputs, now_s)["access"] for now_s in range(3, 8)]
    assert found[-1].events_per_s == 0
    assert max(found[-1].trend) == 100


def test_counters_that_begin_anew_are_no_negative_rate() -> None:
    rates = Rates()
    rates.feed(agent(1000).inputs, 0)
    assert rates.feed(agent(10).inputs, 1)["access"].events_per_s == 0
    assert rates.feed(agent(20).inputs, 2)["access"].events_per_s == 10
    assert rates.feed({}, 3) == {}


def test_an_input_in_one_sentence() -> None:
    each = InputSnapshot("tail", events=1200, files=3, behind_bytes=5_000, failed=2, words="catching up")
    said = input_sentence("access", each, Rate(120.0, 2_000_000.0))
    assert said == "access: 120 events/s (2.0 MB/s), 1,200 so far, 4.9 KB behind, 3 files, 2 failed, catching up"
    broken = InputSnapshot("exec", state="waiting", last_error="code 127")
    assert input_sentence("cron", broken, Rate()) == "cron: fails and is tried again: code 127"


def test_the_last_words_count_everything() -> None:
    said = summary(agent(12, sent=10, dropped=2, missed=1))
    assert said == "web-1 ran 1 min 5 s: 12 events in (1.2 KB), 10 acknowledged, 2 dropped, 1 of the files missed"


def test_a_description_says_why_an_agent_is_not_well() -> None:
    snapshot = agent()
    snapshot.brokers_up = False
    lines = description(snapshot)
    assert lines[0] == "web-1  (running for 1 min 5 s, process 0)"
    assert "  brokers  b:9092 (not answering)" in lines
    assert lines[-1] == "  !        no broker answers at b:9092"


def test_lines_are_written_when_there_is_news() -> None:
    out = io.StringIO()
    view = Lines(out)
    view.show(agent(0))
    view.show(agent(0))
    view.show(agent(5))
    away = agent(5)
    away.brokers_up = False
    view.show(away)
    view.close(agent(5, sent=5))
    lines = out.getvalue().splitlines()
    assert lines[0] == "brokers answer at b:9092"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "access",
        "access",
        "no broker answers at b",
        "web-1 ran 1 min 5 s",
    ]


def test_json_lines_have_rates_and_everything_else() -> None:
    out = io.StringIO()
    JsonLines(out).show(agent(5))
    told = json.loads(out.getvalue())
    assert (told["name"], told["inputs"]["access"]["events"]) == ("web-1", 5)
    assert told["inputs"]["access"]["events_per_s"] == 0.0


def test_the_view_that_fits() -> None:
    assert isinstance(view_for("json", quiet=True), JsonLines)
    assert isinstance(view_for("text", quiet=True), Silence)
    assert isinstance(view_for("text", quiet=False), Lines)


def test_an_agent_in_a_few_words() -> None:
    assert short(agent(5), {"access": Rate(2.0, 0.0)}) == "5 events, 2.0 events/s, 0 MB/s"


def test_the_live_table_shows_inputs_buffers_and_what_is_wrong() -> None:
    from rich.console import Console

    from penstock.agent.view.live import drawn

    snapshot = agent(1_234_567, files=2, behind_bytes=12_300_000, dropped=7)
    snapshot.inputs["cron"] = InputSnapshot("exec", state="waiting", last_error="code 127")
    snapshot.memory_bytes, snapshot.memory_limit_bytes = 52_000_000, 64_000_000
    snapshot.spool_limit_bytes = 10**9
    out = io.StringIO()
    Console(file=out, width=140).print(drawn(snapshot, {"access": Rate(12_345, 1_840_000, (0.0, 1.0))}))
    text = out.getvalue()
    for words in ("web-1  running 1 min 5 s   ● b:9092", "12,345", "1,234,567", "11.7 MB", "2 files", "7 dropped"):
        assert words in text
    assert "49.6 MB of 61.0 MB    spool" in text
    assert "! input cron fails and is tried again: code 127" in text
