"""The headline's pure parts: what is compared, what a target asks for, what the page says. No figure is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import memory
from bench.brokers import APACHE, EARLIER, NULL, PENSTOCK_NODE
from bench.headline import __main__ as headline
from bench.headline import compare, page, record, targets
from bench.headline.calm import Calm, stolen_s
from bench.headline.disk import dirty_limit_bytes
from bench.headline.targets import Target, judge
from bench.null_broker import Answers, Canned
from penstock.bench.series import Results, Series
from penstock.kernels import scan_batches
from tests.compat.wire import Cursor, fetch_reply, fetch_request


def figure(name: str, *, higher_is_better: bool = True, **samples: list[float]) -> dict[str, Any]:
    series = Series("group", name, "unit", higher_is_better, PENSTOCK_NODE, APACHE, dict(samples))
    return series.to_json()


def run(*figures: dict[str, Any], **also: Any) -> dict[str, Any]:
    return {"series": list(figures), "machine": {"cores": "2"}, "parameters": {"rounds": 3}, **also}


def test_a_slower_machine_is_not_a_slower_broker() -> None:
    before = run(figure("rate", apache=[100.0], penstock=[200.0]))
    now = run(figure("rate", apache=[50.0], penstock=[100.0]))
    assert compare.slower(compare.changes(before, now)) == []


@pytest.mark.parametrize(
    ("higher_is_better", "now"), [(True, 160.0), (False, 240.0)], ids=["a rate that fell", "a cost that rose"]
)
def test_a_ratio_to_kafka_that_fell_by_more_than_15_percent_is_named(higher_is_better: bool, now: float) -> None:
    found = compare.changes(
        run(figure("it", higher_is_better=higher_is_better, apache=[100.0], penstock=[200.0])),
        run(figure("it", higher_is_better=higher_is_better, apache=[100.0], penstock=[now])),
    )
    (worse,) = compare.slower(found)
    assert (worse.figure, worse.partner, worse.rounds) == ("group: it", APACHE, "1 of 1 worse")
    assert "! " in compare.table(found)


def test_a_fall_within_15_percent_is_not_named() -> None:
    before = run(figure("it", apache=[100.0], penstock=[200.0]))
    now = run(figure("it", apache=[100.0], penstock=[175.0]))
    assert compare.slower(compare.changes(before, now)) == []


def test_without_kafka_the_null_broker_is_the_partner_and_without_both_there_is_none() -> None:
    figures = (figure("bound", null=[100.0], penstock=[90.0]), figure("alone", penstock=[1.0]))
    found = compare.changes(run(*figures), run(*figures))
    assert [(change.figure, change.partner) for change in found] == [("group: bound", NULL)]


@pytest.mark.parametrize(
    ("rounds", "word"),
    [
        ([120.0, 110.0, 130.0], "!"),
        ([120.0, 110.0, 190.0], "?"),
        ([120.0] * 7, "!"),
        ([120.0] * 6 + [190.0], "?"),
        ([120.0] * 9 + [190.0], "?"),
        ([120.0] * 10 + [190.0], "!"),
        ([190.0] * 6 + [120.0] * 5, ""),
    ],
    ids=["each", "not each of few", "seven", "six of seven", "nine of ten", "ten of eleven", "within the tolerance"],
)
def test_a_figure_is_slower_when_chance_is_ruled_out(rounds: list[float], word: str) -> None:
    before = run(figure("it", apache=[100.0] * 3, penstock=[200.0, 210.0, 180.0]))
    found = compare.changes(before, run(figure("it", apache=[100.0] * len(rounds), penstock=rounds)))
    assert compare.table(found).splitlines()[1].split(" ")[0] == word
    assert bool(compare.slower(found)) is (word == "!")


def test_a_second_look_adds_its_rounds_to_the_first() -> None:
    first = run(figure("it", earlier=[10.0, 10.0], penstock=[8.0, 9.0]), figure("other", earlier=[1.0], penstock=[1.0]))
    both = compare.pooled(first, run(figure("it", earlier=[10.0], penstock=[12.0])))
    assert [each["samples"]["penstock"] for each in both["series"]] == [[8.0, 9.0, 12.0], [1.0]]
    assert [change.now for change in compare.beside(both)] == [0.9, 1.0]


def test_earlier_code_in_the_same_run_is_compared_round_by_round() -> None:
    now = run(
        figure("cost", higher_is_better=False, earlier=[10.0, 10.0], penstock=[12.0, 13.0]),
        figure("rate", earlier=[100.0, 120.0], penstock=[110.0, 110.0]),
        figure("without a partner", penstock=[1.0]),
    )
    worse, better = compare.beside(now)
    assert (worse.figure, worse.partner, worse.rounds) == ("group: cost", EARLIER, "2 of 2 worse")
    assert worse.slowdown == pytest.approx(0.25)
    assert (better.figure, better.slowdown, better.rounds) == ("group: rate", 0.0, "1 of 2 worse")
    assert compare.slower([worse, better]) == [worse]


@pytest.mark.parametrize(("rate", "code"), [(200.0, 0), (160.0, 1)], ids=["as fast", "slower"])
@pytest.mark.parametrize("look", [[], ["--quick"]], ids=["whole", "quick"])
def test_a_comparison_tells_by_its_exit_code_and_replaces_nothing(
    rate: float, code: int, look: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(rate: float) -> dict[str, Any]:
        result = run(figure("it", apache=[100.0], penstock=[rate]), date="some day", took_s=1, remarks=[], curves={})
        return {**result, "command": "make bench"}

    monkeypatch.setattr(headline, "ROOT", tmp_path)
    monkeypatch.setattr(headline, "DOCS", tmp_path)
    monkeypatch.setattr(headline, "run", lambda _given: (measured(rate), []))
    for name in ("LAST", "PUBLISHED", "ASIDE"):
        monkeypatch.setattr(record, name, tmp_path / name)
    record.write(record.LAST, measured(200.0))
    before = record.LAST.read_bytes()
    assert headline.main(["--compare", *look]) == code
    assert record.LAST.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ASIDE", "LAST"]


def test_other_settings_and_missing_figures_are_told() -> None:
    before = run(figure("a", apache=[1.0]), figure("b", apache=[1.0]))
    now = run(figure("a", apache=[1.0]), parameters={"rounds": 1})
    assert compare.differences(before, now) == [
        "parameters rounds: 3 before, 1 now",
        "1 figures of the run before were not measured now",
    ]


def test_a_cost_target_and_its_figure_are_shown_in_one_convention() -> None:
    series = Series("g", "cpu", "µs", False, PENSTOCK_NODE, APACHE, {APACHE: [100.0], PENSTOCK_NODE: [50.0]})
    (verdict,) = judge([Target("g", "cpu", 0.8)], {("g", "cpu"): series})
    assert (verdict.met, verdict.shown, verdict.needed, verdict.quotient) == (True, "2.00×", "≥ 1.25×", "0.50 (≤ 0.8)")


def test_a_share_of_the_bound_and_a_plain_figure() -> None:
    series = Series("g", "rate", "records/s", True, PENSTOCK_NODE, APACHE, {NULL: [100.0], PENSTOCK_NODE: [80.0]})
    bound, plain, missing = judge(
        [
            Target("g", "rate", 0.9, at_least=True, against=NULL),
            Target("g", "rate", 70, at_least=True, against=None),
            Target("g", "rate", 1.0, at_least=True),
        ],
        {("g", "rate"): series},
    )
    assert (bound.met, bound.shown) == (False, "80% of the bound")
    assert (plain.met, plain.shown) == (True, "80 records/s")
    assert missing.met is None


def test_the_page_of_a_run_without_kafka_has_every_target_and_keeps_the_reason_of_a_missed_one() -> None:
    missed = targets.Target("kafka-producer-perf-test", "100 B, acks=1, batch.size 16 KB", 0.9, True, NULL)
    results = Results(ours=PENSTOCK_NODE, rival=APACHE)
    results.add(missed.group, missed.name, "records/s", NULL, 100.0)
    results.add(missed.group, missed.name, "records/s", PENSTOCK_NODE, 50.0)
    data = run(*(series.to_json() for series in results.series.values()))
    data |= {"date": "today", "command": "make bench", "took_s": 60, "curves": {}}
    data["remarks"] = ["Java or Maven is missing."]
    files = page.files(record.from_json(data), {missed.figure: "Because of this."})
    assert list(files) == ["README.md"]
    text = files["README.md"]
    assert "> Java or Maven is missing." in text
    assert f"**{missed.figure}** (50% of the bound, needed ≥ 90%). Because of this." in text
    assert all(target.figure in text for target in targets.all_targets())


def test_reasons_are_for_figures_that_have_a_target() -> None:
    assert set(page.reasons()) <= {target.figure for target in targets.all_targets()}


def test_the_dirty_limit_is_the_kernels_own() -> None:
    assert dirty_limit_bytes("nr_dirty 3\nnr_dirty_threshold 1000\n", 4096) == 4_096_000


class Host:
    """Takes processors away while samples run, as much of each second as it is told."""

    def __init__(self, *shares: float) -> None:
        self._shares = list(shares)
        self.tries = 0
        self.now_s = self.stolen_s = 0.0

    def sample(self) -> int:
        self.now_s += 1
        self.stolen_s += 2 * self._shares[self.tries]
        self.tries += 1
        return self.tries

    def calm(self, again_s_max: float = 100) -> Calm:
        return Calm(again_s_max, stolen_s=lambda: self.stolen_s, clock=lambda: self.now_s, cores=2)


def test_a_sample_that_the_host_left_alone_is_made_once() -> None:
    host = Host(0.002)
    calm = host.calm()
    assert (calm.sampled(host.sample, 0.003), host.tries, calm.repeated, calm.disturbed) == (1, 1, 0, 0)


def test_a_disturbed_sample_is_made_again_until_it_is_calm() -> None:
    host = Host(0.1, 0.0)
    calm = host.calm()
    assert (calm.sampled(host.sample, 0.003), host.tries, calm.repeated, calm.disturbed) == (2, 2, 1, 0)


def test_of_disturbed_tries_the_calmest_counts_and_is_told_of() -> None:
    host = Host(0.1, 0.05, 0.2)
    calm = host.calm()
    assert (calm.sampled(host.sample, 0.003), host.tries, calm.repeated, calm.disturbed) == (2, 3, 2, 1)
    assert "Of 1 samples" in calm.words()
    assert ", 1 count although the host took processors away" in calm.words()


def test_tries_end_with_the_time_that_there_is_for_them() -> None:
    host = Host(0.1, 0.05, 0.1)
    calm = host.calm(again_s_max=1)
    assert [calm.sampled(host.sample, 0.003), calm.sampled(host.sample, 0.003)] == [2, 3]
    assert (host.tries, calm.repeated, calm.disturbed) == (3, 1, 2)


def test_stolen_time_is_the_eighth_figure_of_all_processors_together() -> None:
    stat = "cpu  198942 0 127934 445306 8575 0 13711 2287 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
    assert stolen_s(stat, 100) == 22.87


def test_memory_is_refreshed_as_far_as_there_is_room_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory.refresh(1 << 20, tmp_path) == 1 << 20
    monkeypatch.setattr(memory, "_room", lambda _directory: 3 << 18)
    assert memory.refresh(1 << 20, tmp_path) == 3 << 18
    assert list(tmp_path.iterdir()) == []


def test_the_null_broker_serves_the_shape_that_a_topics_name_asks_for_from_the_offset_asked_for() -> None:
    answers = Answers("127.0.0.1", 9092, 4, Canned(1_000, 16_000))
    frame = memoryview(fetch_request("some-r100-b1000", 2, 70))[4:]
    body = b"".join(answers.reply(frame) or [])
    headers = [header for _at, header in scan_batches(fetch_reply(Cursor(body)).records)]
    assert [header.base_offset for header in headers[:3]] == [70, 80, 90]
    assert {header.record_count for header in headers} == {10}
