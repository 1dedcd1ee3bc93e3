"""Who may do what, as handlers ask it. `AllowAll` without an authorizer, `AclAuthorizer` with one.

A node has two sides with an image each (see the crossing in ARCHITECTURE), so it has two of them. Until a side knows
the cluster as it is, only super users are let through: nothing but listeners between nodes is open so early.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.model.errors import PenstockError
from penstock.server.doors import Operation, Principal, ResourceType
from penstock.server.logs import Sparing

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.security.acl_index import AclIndex
    from penstock.security.authorizer import Authorizer as Rules
    from penstock.security.authorizer import Verdict
    from penstock.security.decisions import Decisions
    from penstock.server.doors import Authorizer
    from penstock.server.quorum.metadata_driver import PublishedMetadata

log = logging.getLogger("penstock.authorizer")

CLASS_NAME: Final = "authorizer.class.name"
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"

ASKERS_MAX: Final = 256
"""How many (principal, address) pairs have their decisions remembered; the one that came first makes room."""


class BadAuthorizer(PenstockError):
    """The node would be open although its file says that it is not, or nobody could use it."""


class AllowAll:
    """No ACLs: everybody may do everything."""

    __slots__ = ()

    acls = None
    version = 0

    def allows(
        self,
        principal: Principal,
        client_host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        return True

    def allows_any(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return True

    def denied(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        raise AssertionError("nothing is denied where everything is allowed")


class AclAuthorizer:
    """Decides by the ACLs of the image that it follows, and tells the log what was refused.

    Connections of one principal and address share what was decided for any of them: a hit costs two look-ups.
    """

    __slots__ = ("_askers", "_rules", "_sparing")

    def __init__(self, rules: Rules, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic milliseconds; a line that repeats is told once in a while."""
        self._rules = rules
        self._askers: dict[tuple[Principal, str], Decisions] = {}
        self._sparing = Sparing(log, clock=clock)

    @property
    def acls(self) -> AclIndex:
        return self._rules.acls

    @property
    def version(self) -> int:
        return self._rules.version

    def allows(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        asker = self._askers.get((principal, client_host)) or self._asker(principal, client_host)
        return asker.verdict(operation, resource_type, name).allowed

    def allows_any(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        asker = self._askers.get((principal, client_host)) or self._asker(principal, client_host)
        return asker.any_verdict(operation, resource_type).allowed

    def denied(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        verdict = self.explain(principal, client_host, operation, resource_type, name)
        what = f"{operation.name} of {resource_type.name} {name!r}"
        # One line a principal and interval: names are the client's to choose, and so is how many of them it tries.
        self._sparing.warning(f"denied {principal}", "%s from %s: %s is %s", principal, client_host, what, verdict)

    def explain(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """The decision with the rule behind it."""
        return self._asker(principal, client_host).verdict(operation, resource_type, name)

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes over what changed; decisions that were remembered are no good any more."""
        self._rules.follow(image, delta)

    def load(self, image: ClusterImage) -> None:
        """The image is the cluster as it is: from now on its ACLs decide."""
        self._rules.load(image)

    def _asker(self, principal: Principal, client_host: str) -> Decisions:
        from penstock.security.decisions import Decisions

        found = self._askers.get((principal, client_host))
        if found is None:
            if len(self._askers) >= ASKERS_MAX:
                del self._askers[next(iter(self._askers))]
            found = self._askers[principal, client_host] = Decisions(self._rules, principal, _spelled(client_host))
        return found


def _spelled(host: str) -> str:
    """The address as ACLs spell it. What is no address fits only ACLs for every host."""
    from penstock.security.hosts import host_text

    try:
        return host_text(host)
    except ValueError:
        return host


def follow(authorizer: Authorizer, metadata: PublishedMetadata) -> None:
    """Has an authorizer of ACLs hear of every change to them."""
    if isinstance(authorizer, AclAuthorizer):
        metadata.on_publish(authorizer.follow)


def load(authorizer: Authorizer, image: ClusterImage) -> None:
    """The side of the node whose authorizer this is has caught up with the cluster."""
    if isinstance(authorizer, AclAuthorizer):
        authorizer.load(image)


# What a file asks for


def authorizer_of(settings: BrokerSettings, clock: Callable[[], float]) -> Authorizer:
    """The authorizer of one side of a node with these settings, which `check_authorizer` has let through."""
    if not settings.text(CLASS_NAME):
        return AllowAll()
    from penstock.security.acls import parse_super_users
    from penstock.security.authorizer import Authorizer as Rules

    super_users = parse_super_users(_given(settings, SUPER_USERS))
    return AclAuthorizer(Rules(super_users, allow_everyone=_given(settings, ALLOW_EVERYONE).lower() == "true"), clock)


def check_authorizer(settings: BrokerSettings) -> None:
    """BadAuthorizer when the file asks for an authorizer that is not there, or that could be walked around."""
    name = settings.text(CLASS_NAME)
    if not name:
        return
    from penstock.security.acls import parse_super_users

    if name != STANDARD:
        raise BadAuthorizer(
            f"{CLASS_NAME} is {name}, a Java class that cannot be loaded here. The one authorizer that is built in is "
            f"{STANDARD}"
        )
    try:
        parse_super_users(_given(settings, SUPER_USERS))
    except ValueError as broken:
        raise BadAuthorizer(f"{SUPER_USERS}: {broken}; several are divided by semicolons") from None
    if _given(settings, ALLOW_EVERYONE).lower() not in ("", "true", "false"):
        raise BadAuthorizer(f"{ALLOW_EVERYONE} is true or false")
    between_nodes = list(settings.controller_listener_names)
    if settings.is_broker:
        between_nodes.append(settings.inter_broker_listener_name)
    for listener in dict.fromkeys(between_nodes):
        _check_authenticated(settings, listener)


def _check_authenticated(settings: BrokerSettings, listener: str) -> None:
    """Whoever is taken for a node there may speak for every user."""
    protocol = settings.listener_security_protocol_map.get(listener, "PLAINTEXT")
    if protocol == "PLAINTEXT":
        why = "it is PLAINTEXT, so nobody proves who they are"
    elif protocol == "SSL" and settings.for_listener(listener, "ssl.client.auth") != "required":
        why = "it is SSL without ssl.client.auth=required, so nobody has to show a certificate"
    else:
        return
    raise BadAuthorizer(
        f"{CLASS_NAME} protects nothing while nodes talk to each other over the listener {listener}: {why}. Give it "
        "SSL with ssl.client.auth=required, or SASL_SSL, in listener.security.protocol.map"
    )


def _given(settings: BrokerSettings, name: str) -> str:
    value = settings.get(name)
    return value if isinstance(value, str) else ""


# For tests of handlers


class Asked(NamedTuple):
    """One question that a handler put."""

    operation: Operation
    resource_type: ResourceType
    name: str


ANY_NAME: Final = "(any)"
"""Stands in a question that is about no name."""


class Recording:
    """Remembers every question; answers from a set of refusals. For tests of handlers."""

    __slots__ = ("asked", "offences", "refusals")

    acls = None
    version = 0

    def __init__(self, *refusals: Asked) -> None:
        self.asked: list[Asked] = []
        self.offences: list[Asked] = []
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

    def allows_any(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return self.allows(principal, client_host, operation, resource_type, ANY_NAME)

    def denied(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        self.offences.append(Asked(operation, resource_type, name))


UNASKED = frozenset({"api_versions", "sasl_handshake", "sasl_authenticate"})
"""Modules of APIs that Kafka answers to everybody, because they come before the client is known."""


def asks(source: str) -> bool:
    """Whether a handler's source puts a question: it calls `ctx.allow`, `ctx.may`, `ctx.authorized_operations`,
    `decided`, `unaltered` or `takes_tokens`.

    Coarse on purpose. A handler that asks the wrong thing is caught by its own test with `Recording`; this catches
    the one that nobody thought of.
    """
    of_context = ("ctx.allow(", "ctx.may(", "ctx.authorized_operations(")
    shared = ("decided(ctx, request, ", "unaltered(ctx)", "takes_tokens(ctx)")
    return any(question in source for question in (*of_context, *shared))
