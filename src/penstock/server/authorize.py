"""Who may do what. The first authorizer allows everything; the recording one proves that handlers ask."""

from __future__ import annotations

from typing import NamedTuple

from penstock.server.context import Operation, Principal, ResourceType


class AllowAll:
    """No ACLs: everybody may do everything."""

    __slots__ = ()

    def allows(
        self,
        principal: Principal,
        client_host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        return True


class Asked(NamedTuple):
    """One question that a handler put."""

    operation: Operation
    resource_type: ResourceType
    name: str


class Recording:
    """Remembers every question; answers from a set of refusals. For tests of handlers."""

    __slots__ = ("asked", "refusals")

    def __init__(self, *refusals: Asked) -> None:
        self.asked: list[Asked] = []
        self.refusals = frozenset(refusals)

    def allows(
        self,
        principal: Principal,
        client_host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        question = Asked(operation, resource_type, name)
        self.asked.append(question)
        return question not in self.refusals


UNASKED = frozenset({"api_versions", "sasl_handshake", "sasl_authenticate"})
"""Modules of APIs that Kafka answers to everybody, because they come before the client is known."""


def asks(source: str) -> bool:
    """Whether a handler's source puts a question: it calls `ctx.allow`, `ctx.authorized_operations`, `decided`
    or `why_unaltered`.

    Coarse on purpose. A handler that asks the wrong thing is caught by its own test with `Recording`; this catches
    the one that nobody thought of.
    """
    questions = ("ctx.allow(", "ctx.authorized_operations(", "decided(ctx, request, ", "why_unaltered(ctx)")
    return any(question in source for question in questions)
