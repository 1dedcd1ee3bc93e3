"""Who may do what: Kafka's StandardAuthorizer as a function, and the rule that decided.

The order of a decision:

1. super users may do everything, also before ACLs are known and against any DENY;
2. while ACLs are not loaded nobody else may do anything;
3. a DENY that fits refuses; else an ALLOW that fits allows;
4. else a resource that any ACL of anybody is about is closed;
5. else `allow.everyone.if.no.acl.found` decides.

An ACL is about a resource when its name is equal, `*`, or (PREFIXED) a beginning of it. It fits when principal, host
and operation do. ALL fits every operation. An ALLOW of READ, WRITE, DELETE or ALTER also gives DESCRIBE, one of
ALTER_CONFIGS also DESCRIBE_CONFIGS; a DENY takes nothing but its own.

One rule is ours: READ, WRITE, DELETE, ALTER and ALTER_CONFIGS of the topics that steer the cluster and its pipelines
take an ACL that names them. A position or a stop record there is power over others, and so is a retention that ends the
audit of what one did; nobody means to give that who opens `*`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.model.ids import METADATA_TOPIC, Uuid
from penstock.model.security import Operation, PatternType, Permission, Principal, ResourceType
from penstock.security.acl_index import AclIndex
from penstock.security.acls import ANY_HOST, ANY_NAME, ANY_PRINCIPAL, AclEntry

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage

OWN_TOPICS_PREFIX: Final = "__penstock_"
"""How the names of topics begin that belong to Penstock itself."""

_DESCRIBE_WITH: Final = frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER})
_STEERING: Final = frozenset(
    {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS}
)


class Rule(Enum):
    """What decided; the words are for people who ask why."""

    SUPER_USER = "a super user may do everything"
    NOT_LOADED = "ACLs are not loaded yet"
    ACL = "an ACL decides"
    NO_FITTING_ACL = "the resource has ACLs, and none of them allows it"
    NOT_NAMED = "this topic takes an ACL that names it, not one of everything"
    NO_ACL = "no ACL is about the resource"


class Verdict(NamedTuple):
    """Whether it is allowed, by which rule and, if that is an ACL, by which one."""

    allowed: bool
    rule: Rule
    entry: AclEntry | None = None

    def __str__(self) -> str:
        why = self.rule.value if self.entry is None else str(self.entry)
        return f"{'allowed' if self.allowed else 'denied'}: {why}"


_SUPER_USER: Final = Verdict(True, Rule.SUPER_USER)
_NOT_LOADED: Final = Verdict(False, Rule.NOT_LOADED)
_NO_FITTING_ACL: Final = Verdict(False, Rule.NO_FITTING_ACL)
_NOT_NAMED: Final = Verdict(False, Rule.NOT_NAMED)


class Authorizer:
    """Decides by the ACLs of the image that it follows.

    `version` moves whenever the answer to any question may have changed; decisions that somebody keeps are good for
    one version only.
    """

    __slots__ = ("_index", "_super_users", "_without_acl", "loaded", "version")

    def __init__(self, super_users: Collection[str] = (), *, allow_everyone: bool = False) -> None:
        """`super_users` are principals as text (`parse_super_users`)."""
        self._index = AclIndex()
        self._super_users = frozenset(super_users)
        self._without_acl = Verdict(allow_everyone, Rule.NO_ACL)
        self.loaded = False
        self.version = 0

    @property
    def acls(self) -> AclIndex:
        """What it decides by, for reading."""
        return self._index

    def load(self, image: ClusterImage) -> None:
        """Starts anew from a whole image; from now on ACLs are known."""
        self._index = AclIndex.of(image.acls)
        self.loaded = True
        self.version += 1

    def take(self, entries: Iterable[AclEntry]) -> None:
        """Starts anew from ACLs that somebody has listed, who is asked why something is as it is."""
        self._index = AclIndex()
        for number, entry in enumerate(entries):
            self._index.see(Uuid(number.to_bytes(16, "big")), entry)
        self.loaded = True
        self.version += 1

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes over what changed since the last image; costs nothing when no ACL did."""
        if delta.acls:
            self._index.follow(image, delta)
            self.version += 1

    def is_super(self, principal: Principal) -> bool:
        return str(principal) in self._super_users

    def decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """Whether `principal` at `host` (`hosts.host_text`) may do `operation` to the resource of this name."""
        asking = str(principal)
        if asking in self._super_users:
            return _SUPER_USER
        if not self.loaded:
            return _NOT_LOADED
        unnamed = _unnamed(operation, resource_type, name)
        allowing: AclEntry | None = None
        closed = False
        for by_principal in self._index.candidates(resource_type, name):
            closed = True
            for entry in _fitting(by_principal, asking, host, operation):
                if entry.permission == Permission.DENY:
                    return Verdict(False, Rule.ACL, entry)
                if allowing is None and _allows(entry) and not (unnamed and _is_wide(entry, name)):
                    allowing = entry
        if allowing is not None:
            return Verdict(True, Rule.ACL, allowing)
        if unnamed:
            return _NOT_NAMED
        return _NO_FITTING_ACL if closed else self._without_acl

    def allows(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """`decide` for those who need no reason."""
        return self.decide(principal, client_host, operation, resource_type, name).allowed

    def decide_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> Verdict:
        """Whether there may be a resource of the type that `principal` can do `operation` to (InitProducerId asks).

        As in Kafka the answer is about names, not about what exists: some ALLOW of that operation or of ALL has to
        reach further than every DENY. Implied operations do not count.
        """
        # The name that Kafka tries first; it stands for super users and for everybody being allowed.
        anywhere = self.decide(principal, host, operation, resource_type, "hardcode")
        if anywhere.allowed or anywhere.rule is Rule.NOT_LOADED:
            return anywhere
        entries = _of_either(self._index.of_type(resource_type), str(principal))
        mine = [
            entry
            for entry in entries
            if entry.host in (ANY_HOST, host) and entry.operation in (Operation.ALL, operation)
        ]
        denials = {(entry.pattern, entry.name): entry for entry in mine if entry.permission == Permission.DENY}
        everything = denials.get((PatternType.LITERAL, ANY_NAME))
        if everything is not None:
            return Verdict(False, Rule.ACL, everything)
        for entry in mine:
            if _allows(entry) and not _dominated(entry, denials):
                return Verdict(True, Rule.ACL, entry)
        return _NO_FITTING_ACL


def _of_either(by_principal: Mapping[str, list[AclEntry]], asking: str) -> Iterable[AclEntry]:
    mine = by_principal.get(asking, ())
    return mine if asking == ANY_PRINCIPAL else (*mine, *by_principal.get(ANY_PRINCIPAL, ()))


def _fitting(
    by_principal: Mapping[str, list[AclEntry]], asking: str, host: str, operation: Operation
) -> Iterator[AclEntry]:
    """The entries for this principal, host and operation."""
    for entry in _of_either(by_principal, asking):
        if entry.host in (ANY_HOST, host) and _gives(entry, operation):
            yield entry


def _allows(entry: AclEntry) -> bool:
    # A permission of a later release is neither: what is not known allows nothing.
    return entry.permission == Permission.ALLOW


def _gives(entry: AclEntry, operation: Operation) -> bool:
    if entry.operation in (operation, Operation.ALL):
        return True
    if not _allows(entry):
        return False
    if operation == Operation.DESCRIBE:
        return entry.operation in _DESCRIBE_WITH
    return operation == Operation.DESCRIBE_CONFIGS and entry.operation == Operation.ALTER_CONFIGS


def _dominated(entry: AclEntry, denials: Collection[tuple[PatternType, str]]) -> bool:
    """Whether everything that an ALLOW reaches is denied."""
    if entry.name == ANY_NAME and entry.pattern == PatternType.LITERAL:
        return False
    if entry.pattern == PatternType.LITERAL and (PatternType.LITERAL, entry.name) in denials:
        return True
    return any((PatternType.PREFIXED, entry.name[:length]) in denials for length in range(1, len(entry.name) + 1))


def _unnamed(operation: Operation, resource_type: ResourceType, name: str) -> bool:
    """Whether the question is about a topic that wide ACLs do not open."""
    return (
        resource_type == ResourceType.TOPIC
        and operation in _STEERING
        and (name == METADATA_TOPIC or name.startswith(OWN_TOPICS_PREFIX))
    )


def _is_wide(entry: AclEntry, name: str) -> bool:
    """Whether an ACL reaches one of those topics without naming it: by `*` or by a beginning that others share."""
    if entry.pattern == PatternType.LITERAL:
        return entry.name != name
    return not entry.name.startswith(METADATA_TOPIC if name == METADATA_TOPIC else OWN_TOPICS_PREFIX)
