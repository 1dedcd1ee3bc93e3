"""Decisions that a connection remembers, so that a produce or fetch asks with one look-up a topic."""

from __future__ import annotations

from typing import Final

from penstock.model.security import Operation, Principal, ResourceType
from penstock.security.authorizer import Authorizer, Rule, Verdict

KEPT_MAX: Final = 1_024
"""Verdicts a connection keeps. A client may ask about any number of names, so at the bound all are forgotten."""

NAME_CHARACTERS_MAX: Final = 255
"""Longer names are decided anew each time: topics have at most 249 characters, and the bound shall be one of bytes."""

_Question = tuple[Operation, ResourceType, str]


class Decisions:
    """What one principal at one host was told, as long as the ACLs are the same.

    A hit costs a comparison and a look-up. Whoever re-authenticates as somebody else needs another one.
    """

    __slots__ = ("_authorizer", "_host", "_principal", "_verdicts", "_version")

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._version = authorizer.version
        self._verdicts: dict[_Question, Verdict] = {}

    def verdict(self, operation: Operation, resource_type: ResourceType, name: str) -> Verdict:
        """As `Authorizer.decide`."""
        if self._version == self._authorizer.version:
            known = self._verdicts.get((operation, resource_type, name))
            if known is not None:
                return known
        return self._decide(operation, resource_type, name)

    def allows(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return self.verdict(operation, resource_type, name).allowed

    def any_verdict(self, operation: Operation, resource_type: ResourceType) -> Verdict:
        """As `Authorizer.decide_any`, which only InitProducerId asks: not worth keeping."""
        return self._authorizer.decide_any(self._principal, self._host, operation, resource_type)

    def _decide(self, operation: Operation, resource_type: ResourceType, name: str) -> Verdict:
        authorizer = self._authorizer
        if self._version != authorizer.version:
            self._verdicts.clear()
            self._version = authorizer.version
        verdict = authorizer.decide(self._principal, self._host, operation, resource_type, name)
        if len(name) <= NAME_CHARACTERS_MAX and verdict.rule is not Rule.NOT_LOADED:
            if len(self._verdicts) >= KEPT_MAX:
                self._verdicts.clear()
            self._verdicts[operation, resource_type, name] = verdict
        return verdict

    def __len__(self) -> int:
        return len(self._verdicts)
