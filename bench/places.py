"""Where the suites of this repository put what they measured."""

from __future__ import annotations

from pathlib import Path

from penstock.bench import report
from penstock.bench.series import Results

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs" / "benchmarks"


def write(page: report.Page, results: Results, *, publish: bool) -> list[Path]:
    """Writes bench/results/<suite>.json; when the figures are to be kept, also the page and plot in docs/benchmarks."""
    return report.write(page, results, data_dir=RESULTS, page_dir=DOCS if publish else None)
