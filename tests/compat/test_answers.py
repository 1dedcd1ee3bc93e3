"""Apache Kafka's answers and ours to the same random requests are the same, but for what the limits page says.

PENSTOCK_SEED draws other requests, PENSTOCK_REQUESTS says how many. A failure names the first request of each kind of
difference; the same seed asks it again.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from penstock.model.ids import Uuid
from penstock.protocol.messages.fetch import FetchResponse
from tests.compat.answers.asking import compare, routes
from tests.compat.answers.comparing import Comparison
from tests.compat.answers.deviations import DEVIATIONS, Deviation
from tests.compat.answers.pairs import Pairs
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


def test_an_id_of_ours_stands_for_one_of_theirs_and_everything_else_must_be_the_same() -> None:
    """A comparison that finds nothing must not be one that looks at nothing."""
    made = FetchResponse

    def answer(session_id: int, topic_id: bytes, **said: Any) -> FetchResponse:
        data = made.PartitionData(**{"high_watermark": 7, "records": b"", **said})
        topic = made.FetchableTopicResponse(topic_id=Uuid(topic_id), partitions=[data])
        return made(session_id=session_id, responses=[topic])

    comparison = Comparison(Pairs(), now_ms=0)
    first = answer(1, b"a" * 16), answer(2, b"b" * 16)
    assert comparison.differences(*first) == []
    assert comparison.differences(*first) == []
    (other_session,) = comparison.differences(first[0], answer(3, b"b" * 16))
    assert (other_session.path, other_session.ours) == ("FetchResponse.session_id", 1)
    (behind,) = comparison.differences(first[0], answer(2, b"b" * 16, high_watermark=6))
    assert (behind.path, behind.theirs) == ("FetchResponse.responses[].partitions[].high_watermark", 6)
    (missing,) = comparison.differences(first[0], made(session_id=2))
    assert missing.path == "FetchResponse.responses[]"


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_every_deviation_is_on_the_limits_page(deviation: Deviation) -> None:
    page = " ".join(LIMITS.read_text().split())
    assert deviation.says in page
