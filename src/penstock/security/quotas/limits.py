"""Which limit holds for whom, out of all that are set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.metadata.image import QuotaEntity
from penstock.security.hosts import host_text
from penstock.security.quotas.entities import CLIENT_ID, CONNECTION_CREATION_RATE, CONTROLLER_MUTATION_RATE, IP, USER

DEFAULT: Final = None
"""The name of a type's default entity."""

_ABSENT: Final = ""
"""Stands for a type that an entity does not have; no entity has an empty name."""


_HIGHEST: Final = 1e300
"""Kafka takes infinity for a limit; as a number it can still be multiplied with no time at all."""


class Limit(NamedTuple):
    """A limit and whose use counts against it: `user` or `client` is empty where all users or clients share it.

    The same for everybody with the same level and names, so it says which bucket is charged.
    """

    key: str
    value: float
    user: str
    client: str


class Limits:
    """The limits of an image's quotas. A value: another one is made when quotas change."""

    __slots__ = ("_by_key", "_of_addresses", "any_on_brokers", "keys")

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._by_key: dict[str, dict[tuple[str | None, str | None], float]] = {}
        self._of_addresses: dict[str | None, float] = {}
        for entity, values in quotas.items():
            self._take(dict(entity), values)
        self.keys: frozenset[str] = frozenset(self._by_key)
        """The keys that anybody has a limit of; nobody needs to ask for the others."""
        self.any_on_brokers = bool(self._of_addresses or self.keys - {CONTROLLER_MUTATION_RATE})
        """Whether there is a limit that a broker charges; changes of partitions are charged by the controller."""

    def _take(self, entity: Mapping[str, str | None], values: Mapping[str, float]) -> None:
        if IP in entity:
            rate = values.get(CONNECTION_CREATION_RATE)
            if rate is not None:
                self._of_addresses[_spelled(entity[IP])] = rate
            return
        for key, value in values.items():
            level = (entity.get(USER, _ABSENT), entity.get(CLIENT_ID, _ABSENT))
            self._by_key.setdefault(key, {})[level] = min(value, _HIGHEST)

    def of(self, key: str, user: str, client_id: str) -> Limit | None:
        """The limit of a client, the first that is set of Kafka's eight levels; None when it has none.

        `user` is the name of the principal, `client_id` what the client calls itself. A client that does not say has,
        as in Kafka, the limits of its user only.
        """
        by_level = self._by_key.get(key)
        if by_level is None:
            return None
        for named_user in (user, DEFAULT):
            for named_client in (client_id, DEFAULT) if client_id else ():
                found = by_level.get((named_user, named_client))
                if found is not None:
                    return Limit(key, found, user, client_id)
            found = by_level.get((named_user, _ABSENT))
            if found is not None:
                return Limit(key, found, user, "")
        for named_client in (client_id, DEFAULT) if client_id else ():
            found = by_level.get((_ABSENT, named_client))
            if found is not None:
                return Limit(key, found, "", client_id)
        return None

    def connections_of(self, address: str) -> float | None:
        """New connections a second that an address (`host_text`) may make; None when it is not limited."""
        found = self._of_addresses.get(address)
        return self._of_addresses.get(DEFAULT) if found is None else found


def _spelled(address: str | None) -> str | None:
    try:
        return None if address is None else host_text(address)
    except ValueError:
        return address  # a name that Apache Kafka accepted: it is no address, so nobody has it


NO_LIMITS: Final = Limits({})
