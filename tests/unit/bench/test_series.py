"""Samples, medians and ratios, and how they are written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.bench import report
from penstock.bench.series import Results, readable


def measured() -> Results:
    results = Results(ours="a", rival="b")
    for ours, theirs in ((10.0, 5.0), (30.0, 5.0), (20.0, 8.0)):
        results.add("produce", "records", "records/s", "a", ours)
        results.add("produce", "records", "records/s", "b", theirs)
    results.add("latency", "p99", "ms", "a", 4.0, higher_is_better=False)
    results.add("latency", "p99", "ms", "b", 2.0, higher_is_better=False)
    return results


def page() -> report.Page:
    return report.Page(
        suite="s",
        title="T",
        command="c",
        introduction=["Words."],
        machine={"cores": "2"},
        parameters={"rounds": 3},
        remarks=[],
        titles={"a": "A", "b": "B"},
    )


def test_a_ratio_compares_medians_and_is_above_one_for_the_better() -> None:
    records, latency = measured().series.values()
    assert (records.median("a"), records.spread("a")) == (20.0, (10.0, 30.0))
    assert (records.ratio(), latency.ratio()) == (4.0, 0.5)


def test_without_a_rival_there_is_no_ratio_no_column_and_no_plot(tmp_path: Path) -> None:
    alone = Results(ours="a", rival=None)
    alone.add("produce", "records", "records/s", "a", 10.0)
    assert not alone.compares()
    assert "ratio" not in report.terminal(alone, {"a": "A"})
    assert report.write_page(page(), alone, tmp_path / "s.md") == [tmp_path / "s.md"]
    assert "![" not in (tmp_path / "s.md").read_text()


def test_a_page_has_every_median_with_its_spread_and_the_json_every_sample(tmp_path: Path) -> None:
    written = report.write(page(), measured(), data_dir=tmp_path, page_dir=tmp_path / "docs")
    assert [path.name for path in written] == ["s.json", "s.md", "s.svg"]
    assert "| records | records/s | 20 (10–30) | 5 (5–8) | 4.00× |" in written[1].read_text()
    series = json.loads(written[0].read_text())["series"]
    assert series[0]["samples"] == {"a": [10.0, 30.0, 20.0], "b": [5.0, 5.0, 8.0]}
    assert series[1] | {"samples": {}} == {
        "group": "latency",
        "name": "p99",
        "unit": "ms",
        "higher_is_better": False,
        "samples": {},
        "medians": {"a": 4.0, "b": 2.0},
        "ratio": 0.5,
    }


def test_columns_of_a_terminal_are_lined_up() -> None:
    assert report.terminal(measured(), {"a": "A", "b": "B"}).splitlines()[1:4] == [
        "PRODUCE",
        "figure   unit       A           B        ratio",
        "records  records/s  20 (10–30)  5 (5–8)  4.00×",
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.01234, "0.0123"), (12.34, "12.3"), (1234.5, "1,234"), (0, "0")]
)
def test_numbers_have_three_figures_that_mean_something(value: float | None, text: str) -> None:
    assert readable(value) == text
