"""Apache Kafka's answers and ours to the same random requests are the same, but for what the limits page says.

PENSTOCK_SEED draws other requests, PENSTOCK_REQUESTS says how many. A failure names the first request of each kind of
difference; the same seed asks it again.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.compat.answers.asking import compare, routes
from tests.compat.answers.deviations import DEVIATIONS, Deviation
from tests.compat.answers.settings import PROPERTIES
from tests.compat.apache.node import ApacheKafka
from tests.compat.judged import Penstock

LIMITS = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
SEED = int(os.environ.get("PENSTOCK_SEED", "14"))
REQUESTS = int(os.environ.get("PENSTOCK_REQUESTS", "20000"))


@pytest.mark.compat
@pytest.mark.timeout(1_800)
def test_random_requests_of_every_version_are_answered_as_by_apache_kafka(tmp_path: Path) -> None:
    with (
        Penstock(tmp_path / "ours", properties=PROPERTIES) as ours,
        ApacheKafka(tmp_path / "theirs", properties=PROPERTIES) as theirs,
    ):
        report = asyncio.run(compare(ours, theirs, seed=SEED, requests=REQUESTS))
    assert not report.unexplained, str(report)
    if REQUESTS >= 20_000:
        assert set(report.asked) == {(api.name, version) for api, version in routes()}


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_every_deviation_is_on_the_limits_page(deviation: Deviation) -> None:
    page = " ".join(LIMITS.read_text().split())
    assert deviation.says in page
