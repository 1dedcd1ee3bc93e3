"""A run as JSON: every sample, medians, ratios, targets, machine, versions, command and date; written and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.brokers import APACHE, PENSTOCK_NODE
from bench.headline import targets
from bench.headline.stage import Curve, Stage
from bench.places import DOCS, RESULTS
from penstock.bench.series import Results

SUITE = "headline"
LAST = RESULTS / f"{SUITE}.json"
PUBLISHED = DOCS / f"{SUITE}.json"
ASIDE = RESULTS / f"{SUITE}-aside.json"
"""A run that is not to replace the last one: a comparison, a quick look, a part."""


@dataclass(frozen=True)
class Recorded:
    """A run read back."""

    data: Mapping[str, Any]
    results: Results
    curves: Mapping[str, Curve]

    @property
    def verdicts(self) -> list[targets.Verdict]:
        return targets.judge(targets.all_targets(), self.results.series)


def as_json(
    stage: Stage, *, machine: Mapping[str, str], command: str, date: str, revision: str, took_s: float
) -> dict[str, Any]:
    verdicts = targets.judge(targets.all_targets(), stage.results.series)
    return {
        "suite": SUITE,
        "date": date,
        "revision": revision,
        "command": command,
        "took_s": round(took_s),
        "machine": dict(machine),
        "parameters": {name.replace("_", " "): value for name, value in asdict(stage.settings).items()},
        "remarks": stage.remarks,
        "targets": [
            {**asdict(each.target), "figure": each.target.figure, "value": each.value, "met": each.met}
            for each in verdicts
        ],
        "series": [
            {**series.to_json(), "part": stage.part_of.get(key, "")} for key, series in stage.results.series.items()
        ],
        "curves": stage.curves,
    }


def from_json(data: Mapping[str, Any]) -> Recorded:
    results = Results(ours=PENSTOCK_NODE, rival=APACHE)
    for figure in data["series"]:
        for broker, values in figure["samples"].items():
            for value in values:
                results.add(
                    figure["group"], figure["name"], figure["unit"], broker, value,
                    higher_is_better=figure["higher_is_better"],
                )  # fmt: skip
    curves = {
        key: {line: [(x, y) for x, y in points] for line, points in lines.items()}
        for key, lines in data["curves"].items()
    }
    return Recorded(data, results, curves)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write(path: Path, data: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n")


def last() -> Path | None:
    """The last run on this machine, else the published one."""
    return next((path for path in (LAST, PUBLISHED) if path.exists()), None)
