"""DescribeClientQuotas' filters."""

from __future__ import annotations

import pytest

from penstock.metadata.image import QuotaEntity, quota_entity
from penstock.model.errors import INVALID_REQUEST, UNSUPPORTED_VERSION, ErrorCode, Refused
from penstock.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from penstock.security.quotas.describing import QuotaFilter

Component = tuple[str, int, str | None]

ALICE = quota_entity([("user", "alice")])
DEFAULT = quota_entity([("user", None)])
PAIR = quota_entity([("user", "alice"), ("client-id", "c")])
CLIENT = quota_entity([("client-id", "c")])
ALL = {each: {"k": 1.0} for each in (ALICE, DEFAULT, PAIR, CLIENT)}


def asked(*components: Component, strict: bool = False) -> QuotaFilter:
    data = DescribeClientQuotasRequest.ComponentData
    return QuotaFilter([data(entity_type=t, match_type=m, match=n) for t, m, n in components], strict=strict)


@pytest.mark.parametrize(
    ("components", "strict", "meant"),
    [
        ([], False, [ALICE, DEFAULT, PAIR, CLIENT]),
        ([], True, []),
        ([("user", 0, "alice")], False, [ALICE, PAIR]),
        ([("user", 0, "alice")], True, [ALICE]),
        ([("user", 1, None)], False, [DEFAULT]),
        ([("user", 2, None)], True, [ALICE, DEFAULT]),
        ([("user", 2, None), ("client-id", 0, "c")], True, [PAIR]),
    ],
)
def test_a_filter_means_entities_that_have_what_it_names(
    components: list[Component], strict: bool, meant: list[QuotaEntity]
) -> None:
    assert [entity for entity, _ in asked(*components, strict=strict).among(ALL)] == meant


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("user", 0, "a"), ("user", 2, None)], INVALID_REQUEST),
        ([("ip", 2, None), ("user", 2, None)], INVALID_REQUEST),
        ([("host", 2, None)], UNSUPPORTED_VERSION),
        ([("", 2, None)], INVALID_REQUEST),
        ([("user", 0, None)], INVALID_REQUEST),
        ([("user", 1, "a")], INVALID_REQUEST),
        ([("user", 2, "a")], INVALID_REQUEST),
        ([("user", 3, None)], INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(components: list[Component], error: ErrorCode) -> None:
    with pytest.raises(Refused) as refused:
        asked(*components)
    assert refused.value.error == error
