"""What goes into the metadata log, in pieces that followers can copy."""

from __future__ import annotations

import pytest

from penstock.controller.batches import BATCH_BYTES_MAX, plan_batches
from penstock.controller.decision import Decision
from penstock.model.errors import RECORD_LIST_TOO_LARGE, Refused
from penstock.protocol.disk.metadata_security import DelegationTokenRecord

LEVEL = 30


def token(size: int) -> tuple[DelegationTokenRecord, int]:
    """Of about this size: texts have their bound, lists of them have none."""
    name = "User:" + "x" * 29_995
    renewers = [name] * (size // len(name))
    return DelegationTokenRecord(owner="User:alice", requester="User:alice", renewers=renewers, token_id="1"), 0


@pytest.mark.parametrize("level", [LEVEL, 1])
@pytest.mark.parametrize("others", [0, 3])
def test_a_record_that_fits_no_batch_is_refused_before_anything_is_appended(level: int, others: int) -> None:
    records = [token(0)] * others + [token(BATCH_BYTES_MAX + 60_000)]
    with pytest.raises(Refused) as refused:
        plan_batches(Decision(records), level)
    assert refused.value.error is RECORD_LIST_TOO_LARGE


def test_what_fits_one_batch_is_one_and_more_is_a_transaction() -> None:
    half = token(BATCH_BYTES_MAX // 2 - 60_000)
    assert plan_batches(Decision([half]), LEVEL) == [[half]]
    batches = plan_batches(Decision([half] * 3, name="three"), LEVEL)
    assert [len(batch) for batch in batches] == [3, 2], "the halves, with a beginning and an end"
