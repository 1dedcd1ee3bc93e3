"""Who asks: users with one ACL each, users with everything but one operation, and some that are bound to an address.

An ACL of one kind stands on two names of a type, one that exists and one that does not: what is told of either may
differ. `literal` names them, `prefixed` has the beginning of two others, `everywhere` is the star.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.security import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

ADMIN = "admin"
"""A super user: the nodes' own name, and whoever makes things."""
ANONYMOUS = "ANONYMOUS"
"""Whoever comes by the listener without a login."""
NOTHING, EVERYTHING = "nothing", "everything"
OWNERS = ("own", "pre-one", "other")
"""Have a delegation token each."""
HERE, ELSEWHERE, ANYWHERE = "127.0.0.1", "127.0.0.2", "*"

LITERAL, PREFIXED, EVERYWHERE = "literal", "prefixed", "everywhere"
PATTERNS = (LITERAL, PREFIXED, EVERYWHERE)

TYPES = tuple(kind for kind in ResourceType if kind not in (ResourceType.UNKNOWN, ResourceType.ANY))
OPERATIONS = tuple(each for each in Operation if each not in (Operation.UNKNOWN, Operation.ANY))

# What an ACL of each way to name things stands on. Tokens are named by ids that each broker draws for itself.
_NAMES = {
    ResourceType.TOPIC: {LITERAL: ("own", "void"), PREFIXED: ("pre-",)},
    ResourceType.GROUP: {LITERAL: ("own", "void", "crowd"), PREFIXED: ("pre-",)},
    ResourceType.TRANSACTIONAL_ID: {LITERAL: ("own",), PREFIXED: ("pre-",)},
    ResourceType.USER: {LITERAL: ("User:own", "User:void"), PREFIXED: ("User:pre-",)},
    ResourceType.CLUSTER: {LITERAL: (CLUSTER_NAME,), PREFIXED: (CLUSTER_NAME,)},
}


class Rule(NamedTuple):
    """An ACL of one user. `how` is one of `PATTERNS`."""

    permission: Permission
    operation: Operation
    kind: ResourceType
    how: str = LITERAL
    host: str = ANYWHERE


class Acl(NamedTuple):
    """An ACL as brokers know it."""

    kind: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


def cast() -> dict[str, tuple[Rule, ...]]:
    """Everybody who may do less than everything, by name, with their rules."""
    users: dict[str, tuple[Rule, ...]] = {NOTHING: (), EVERYTHING: _everything(), ANONYMOUS: ()}
    users |= dict.fromkeys(OWNERS, ())
    users |= {
        f"{how}-{_word(kind)}-{_word(operation)}": (Rule(Permission.ALLOW, operation, kind, how),)
        for kind in TYPES
        for how in PATTERNS
        for operation in OPERATIONS
        if how != EVERYWHERE or kind != ResourceType.CLUSTER
    }
    users |= {
        f"but-{_word(kind)}-{_word(operation)}": (*_everything(), Rule(Permission.DENY, operation, kind))
        for kind in TYPES
        for operation in OPERATIONS
    }
    users |= dict(_bound())
    return users


def _everything(host: str = ANYWHERE) -> tuple[Rule, ...]:
    return tuple(
        Rule(Permission.ALLOW, Operation.ALL, kind, LITERAL if kind == ResourceType.CLUSTER else EVERYWHERE, host)
        for kind in TYPES
    )


def _bound() -> Iterator[tuple[str, tuple[Rule, ...]]]:
    """Those whose rules are about an address: the one that all of them come from, or another."""
    for word, host in (("here", HERE), ("elsewhere", ELSEWHERE)):
        yield f"all-from-{word}", _everything(host)
        denials = tuple(
            Rule(Permission.DENY, Operation.ALL, kind, LITERAL if kind == ResourceType.CLUSTER else EVERYWHERE, host)
            for kind in TYPES
        )
        yield f"none-from-{word}", (*_everything(), *denials)
        for kind, operation in (
            (ResourceType.TOPIC, Operation.READ),
            (ResourceType.TOPIC, Operation.WRITE),
            (ResourceType.GROUP, Operation.READ),
            (ResourceType.CLUSTER, Operation.ALTER),
        ):
            name = f"{_word(kind)}-{_word(operation)}-from-{word}"
            yield f"only-{name}", (Rule(Permission.ALLOW, operation, kind, PREFIXED, host),)
            yield f"no-{name}", (*_everything(), Rule(Permission.DENY, operation, kind, LITERAL, host))


def _word(named: ResourceType | Operation) -> str:
    return named.name.lower().replace("_", "")


def acls_of(user: str, rules: tuple[Rule, ...], token_ids: dict[str, str]) -> Iterator[Acl]:
    """The rules of a user as a broker has to be told them; `token_ids` are those that it gave the owners' tokens."""
    for permission, operation, kind, how, host in rules:
        pattern = PatternType.PREFIXED if how == PREFIXED else PatternType.LITERAL
        for name in names_of(kind, how, token_ids):
            yield Acl(kind, name, pattern, f"User:{user}", host, operation, permission)


def names_of(kind: ResourceType, how: str, token_ids: dict[str, str]) -> tuple[str, ...]:
    if how == EVERYWHERE:
        return ("*",)
    if kind == ResourceType.DELEGATION_TOKEN:
        return (token_ids["own"],) if how == LITERAL else (token_ids["pre-one"][:8],)
    return _NAMES[kind][how]


def public_acls() -> Iterator[Acl]:
    """What everybody may do: read `public`, and nothing whatever with `shut`."""
    for operation in (Operation.DESCRIBE, Operation.READ):
        yield Acl(ResourceType.TOPIC, "public", PatternType.LITERAL, "User:*", "*", operation, Permission.ALLOW)
    yield Acl(ResourceType.TOPIC, "shut", PatternType.LITERAL, "User:*", "*", Operation.ALL, Permission.DENY)
