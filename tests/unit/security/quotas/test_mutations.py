"""Limits on changes of partitions: topic by topic, refused or only paused afterwards."""

from __future__ import annotations

import pytest

from penstock.model.errors import THROTTLING_QUOTA_EXCEEDED, Refused
from penstock.security.quotas.tokens import FREE, Mutations, TokenBucket


def test_a_strict_request_is_refused_while_tokens_are_owed_and_charged_whole_otherwise() -> None:
    bucket = TokenBucket(2, 0)
    mutations = Mutations(bucket, 0, strict=True)
    for partitions in (10, 10, 5):
        mutations.take(partitions)
    assert mutations.throttle_ms == 0, "nothing was refused yet"
    with pytest.raises(Refused) as refusal:
        mutations.take(1)
    assert refusal.value.error is THROTTLING_QUOTA_EXCEEDED
    assert mutations.throttle_ms == 1_500
    later = Mutations(bucket, 2_000, strict=True)
    later.take(1)
    assert (later.throttle_ms, bucket.tokens(2_000)) == (0, 0)


def test_a_permissive_one_is_done_and_paused() -> None:
    mutations = Mutations(TokenBucket(2, 0), 0, strict=False)
    mutations.take(25)
    assert mutations.throttle_ms == 1_500
    mutations.take(1)
    assert mutations.throttle_ms == 2_000


def test_where_nothing_is_limited_everything_passes() -> None:
    FREE.take(1 << 40)
    assert FREE.throttle_ms == 0
