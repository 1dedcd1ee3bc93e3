"""DescribeClientQuotas (48): which entities a filter means. Kafka's words, as in `acls.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.metadata.image import QuotaEntity
from penstock.model.errors import INVALID_REQUEST, UNSUPPORTED_VERSION, Refused
from penstock.security.quotas.entities import CLIENT_ID, IP, USER

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2

_WITH_MATCH: Final = {DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


class QuotaFilter:
    """Which entities are meant: those that have every named type, with the name if one is given."""

    __slots__ = ("_exact", "_strict", "_types")

    def __init__(self, components: Sequence[DescribeClientQuotasRequest.ComponentData], *, strict: bool) -> None:
        """Refused when the components do not make sense together. `strict`: entities have no type that is not named."""
        self._exact: dict[str, str | None] = {}
        self._types: set[str] = set()
        self._strict = strict
        for component in components:
            self._take(component.entity_type, component.match_type, component.match)
        if IP in self._types and len(self._types) > 1:
            raise Refused(
                INVALID_REQUEST,
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component.",
            )

    def _take(self, type: str, match_type: int, match: str | None) -> None:
        if not type:
            raise Refused(INVALID_REQUEST, "Invalid empty entity type.")
        if type in self._types:
            raise Refused(INVALID_REQUEST, f"Entity type {type} cannot appear more than once in the filter.")
        if type not in (USER, CLIENT_ID, IP):
            raise Refused(UNSUPPORTED_VERSION, f"Unsupported entity type {type}")
        if match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise Refused(INVALID_REQUEST, f"Unknown match type {match_type}")
        if match_type == EXACT and match is None:
            raise Refused(INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match_type != EXACT and match is not None:
            raise Refused(
                INVALID_REQUEST, f"Request specified {_WITH_MATCH[match_type]}, but also specified a match string."
            )
        self._types.add(type)
        if match_type != SPECIFIED:
            self._exact[type] = match

    def matches(self, entity: QuotaEntity) -> bool:
        names = dict(entity)
        if self._strict and len(names) != len(self._types):
            return False
        return self._types <= names.keys() and all(names[type] == name for type, name in self._exact.items())

    def among(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
        """The entities that are meant, with their limits."""
        return [(entity, values) for entity, values in quotas.items() if self.matches(entity)]
