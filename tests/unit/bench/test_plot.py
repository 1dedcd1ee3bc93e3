"""Charts are SVG that any reader takes, whatever the points."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from penstock.bench.plot import COLOURS, DASHES, line_chart, line_looks, log_ticks, ratio_chart, short
from penstock.bench.series import Results

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def chart(points: list[tuple[float, float]], **options: bool) -> str:
    return line_chart("T & title", {"one": points}, x_label="clients", y_label="MB/s", **options)


def test_a_chart_has_its_title_labels_ticks_and_legend() -> None:
    found = texts(chart([(1, 10), (2, 40)]))
    assert found[0] == "T & title"
    assert {"clients", "MB/s", "one", "0", "20", "40"} <= set(found)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (23.9, 850, [20, 50, 100, 200, 500, 1_000]),
        (0.09, 57.6, [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]),
        (10, 1_000, [10, 20, 50, 100, 200, 500, 1_000]),
        (3, 200_000, [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]),
        (7, 7, [5, 10]),
        (10, 10, [10, 20]),
    ],
    ids=["within", "many", "from tick to tick", "too many", "one value", "one value on a tick"],
)
def test_logarithmic_ticks_are_1_2_and_5_or_powers_and_enclose_all_values(
    low: float, high: float, ticks: list[float]
) -> None:
    assert log_ticks(low, high) == ticks


def test_only_a_logarithmic_y_axis_says_so() -> None:
    assert "MB/s, logarithmic" in texts(chart([(1, 2), (2, 900)], log_y=True))
    assert "MB/s" in texts(chart([(1, 2), (2, 900)], log_x=True))


def test_a_logarithmic_axis_has_powers_of_ten_and_no_place_for_zero() -> None:
    svg = chart([(0, 1), (10, 5), (10_000, 50)], log_x=True, log_y=True)
    assert {"10", "100", "1k", "10k"} <= set(texts(svg))
    drawn = [each.get("points", "").split() for each in ET.fromstring(svg).iter(f"{SVG}polyline")]
    assert len(drawn[-1]) == 2


@pytest.mark.parametrize("points", [[], [(3.0, 5.0)], [(1.0, 7.0), (2.0, 7.0)], [(1.0, -3.0), (2.0, 3.0)]])
@pytest.mark.parametrize("options", [{}, {"from_zero": False}, {"log_x": True, "log_y": True}])
def test_no_points_one_point_and_level_lines_are_charts_too(
    points: list[tuple[float, float]], options: dict[str, bool]
) -> None:
    ET.fromstring(chart(points, **options))


def test_of_very_many_points_the_peak_stays() -> None:
    svg = chart([(float(at), 1000.0 if at == 12_345 else 1.0) for at in range(20_000)])
    (line,) = [each.get("points", "") for each in ET.fromstring(svg).iter(f"{SVG}polyline")][1:]
    heights = [float(pair.split(",")[1]) for pair in line.split()]
    assert len(heights) <= 800
    assert min(heights) < max(heights) - 200


def test_a_bar_says_how_many_times_better() -> None:
    results = Results(ours="a", rival="b")
    results.add("produce", "rate", "records/s", "a", 30.0)
    results.add("produce", "rate", "records/s", "b", 20.0)
    series = list(results.series.values())
    assert texts(ratio_chart(series, "T")) == ["T", "produce: rate", "1.50×"]
    named = ratio_chart(series, "T", {"produce: rate": "how fast"}, with_values=True)
    assert texts(named) == ["T", "how fast", "1.50×: 30 beside 20 records/s"]


def test_colours_say_whose_a_line_is_and_dashes_what_it_shows() -> None:
    names = ["ours, produce", "ours, fetch", "theirs, produce", "theirs, fetch"]
    assert line_looks(names) == [(colour, dashes) for colour in COLOURS[:2] for dashes in DASHES[:2]]


@pytest.mark.parametrize("names", [["ours", "theirs", "null, both"], [f"ours, {n}" for n in range(4)]])
def test_lines_of_other_names_have_a_colour_each(names: list[str]) -> None:
    assert line_looks(names) == [(colour, "") for colour in COLOURS[: len(names)]]


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1500, "1.5k"), (2_000_000, "2M"), (0.25, "0.25"), (3e9, "3G")])
def test_ticks_are_short(value: float, text: str) -> None:
    assert short(value) == text
